#ifndef _INTRINSICS_XMMINTRIN_H
#define _INTRINSICS_XMMINTRIN_H
#include <immintrin.h>
#endif
