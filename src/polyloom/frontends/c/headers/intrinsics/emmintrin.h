#ifndef _INTRINSICS_EMMINTRIN_H
#define _INTRINSICS_EMMINTRIN_H
#include <immintrin.h>
#endif
