void f(int n, float x[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    x[i] = f;
#pragma endscop
}
