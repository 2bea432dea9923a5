#ifndef _INTRINSICS_PMMINTRIN_H
#define _INTRINSICS_PMMINTRIN_H
#include <immintrin.h>
#endif
