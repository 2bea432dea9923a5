#ifndef _INTRINSICS_MMINTRIN_H
#define _INTRINSICS_MMINTRIN_H
#include <immintrin.h>
#endif
