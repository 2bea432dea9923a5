#ifndef _INTRINSICS_SMMINTRIN_H
#define _INTRINSICS_SMMINTRIN_H
#include <immintrin.h>
#endif
