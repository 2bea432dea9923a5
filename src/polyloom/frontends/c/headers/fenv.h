#ifndef _FENV_H
#define _FENV_H
typedef unsigned short fexcept_t;
typedef struct { unsigned short state[16]; } fenv_t;
#define FE_INVALID 1
#define FE_DIVBYZERO 4
#define FE_OVERFLOW 8
#define FE_UNDERFLOW 16
#define FE_INEXACT 32
#define FE_ALL_EXCEPT 61
#define FE_TONEAREST 0
#define FE_DOWNWARD 0x400
#define FE_UPWARD 0x800
#define FE_TOWARDZERO 0xc00
#define FE_DFL_ENV ((const fenv_t *)-1)
int feclearexcept(int exceptions);
int feraiseexcept(int exceptions);
int fetestexcept(int exceptions);
int fegetround(void);
int fesetround(int direction);
int fegetenv(fenv_t *environment);
int fesetenv(const fenv_t *environment);
#endif
