#ifndef _INTRINSICS_NMMINTRIN_H
#define _INTRINSICS_NMMINTRIN_H
#include <immintrin.h>
#endif
