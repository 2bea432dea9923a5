// n=9
void f(int n, float A[n], double B[n], int C[n], unsigned D[n], char E[n]) {
#pragma scop
  for (int i = 0; i < n; i++) {
    B[i] = (i >= 0 ? A[i] : B[i]) - A[n - 1 - i];
    B[i] += (n < 0 ? B[i] : A[i]) * 0.1f;
    B[i] += (i >= 0 ? C[i] : A[i]) / 2;
    D[i] = (i < n ? C[i] : D[i]) / 3;
    C[i] = (i < n ? E[i] : E[0]) * 1000000;
    D[i] += (i % 3 ? -i : 0u) / 5;
  }
#pragma endscop
}
