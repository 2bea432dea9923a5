#ifndef _INTRINSICS_WMMINTRIN_H
#define _INTRINSICS_WMMINTRIN_H
#include <immintrin.h>
#endif
