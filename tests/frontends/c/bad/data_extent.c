void f(int n, int m[1], float x[n]) {
#pragma scop
  int k = m[0];
  float B[k];
  for (int i = 0; i < n; i++)
    x[i] = 2;
#pragma endscop
}
