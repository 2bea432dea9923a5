// n=9
void f(int n, double A[n], float B[n], int C[n]) {
#pragma scop
  for (int i = 0; i < n; i++) {
    A[i] = 0.3f + A[i] * 0.5 + 0.1F * 3.0;
    B[i] = 0.7f * B[i] + 1e-3f;
    C[i] += '\xff' + '\377' + '\x7f' + '\101' + 'a';
  }
  for (int i = 0; i < n; i++)
    A[i] += 0x1.8p-1f * i + 0x1.999999999999ap-4f + 0x.8P1F + 0x1.999999999999ap-4 + (0.1f == 0.1);
#pragma endscop
}
