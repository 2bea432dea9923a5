#ifndef _INTRINSICS_TMMINTRIN_H
#define _INTRINSICS_TMMINTRIN_H
#include <immintrin.h>
#endif
