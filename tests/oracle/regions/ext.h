enum { N = 9 };
extern double A[N], B[], scale;
extern double B[N + 1];
