struct point;
void f(int n, float x[n], struct point *p) {
#pragma scop
  for (int i = 0; i < n; i++)
    x[i] = sizeof(*p);
#pragma endscop
}
