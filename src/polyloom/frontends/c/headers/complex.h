#ifndef _COMPLEX_H
#define _COMPLEX_H
#define complex _Complex
#define _Complex_I __polyloom_imaginary_unit
#define I _Complex_I
double creal(double complex value);
float crealf(float complex value);
double cimag(double complex value);
float cimagf(float complex value);
double cabs(double complex value);
float cabsf(float complex value);
double carg(double complex value);
float cargf(float complex value);
double complex conj(double complex value);
float complex conjf(float complex value);
double complex cexp(double complex value);
float complex cexpf(float complex value);
#endif
