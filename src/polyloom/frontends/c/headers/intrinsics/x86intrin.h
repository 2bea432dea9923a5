#ifndef _INTRINSICS_X86INTRIN_H
#define _INTRINSICS_X86INTRIN_H
#include <immintrin.h>
#endif
