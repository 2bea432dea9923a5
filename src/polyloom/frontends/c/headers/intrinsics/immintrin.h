#ifndef _INTRINSICS_IMMINTRIN_H
#define _INTRINSICS_IMMINTRIN_H
typedef struct { long at[1]; } __m64;
typedef struct { float at[4]; } __m128;
typedef struct { double at[2]; } __m128d;
typedef struct { long at[2]; } __m128i;
typedef struct { float at[8]; } __m256;
typedef struct { double at[4]; } __m256d;
typedef struct { long at[4]; } __m256i;
typedef struct { float at[16]; } __m512;
typedef struct { double at[8]; } __m512d;
typedef struct { long at[8]; } __m512i;
typedef unsigned char __mmask8;
typedef unsigned short __mmask16;
typedef unsigned __mmask32;
typedef unsigned long __mmask64;
void *_mm_malloc(unsigned long size, unsigned long alignment);
void _mm_free(void *data);
#endif
