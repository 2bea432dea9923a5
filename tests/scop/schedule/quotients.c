/* Made by chance (tests/fuzz, kind c, seed 44703661): isl's scheduler took minutes with its quotients. */
void kernel(int n, int m, short a[40], float b[40], unsigned c[40], unsigned A[40][40], unsigned char B[40][40])
{
#pragma scop
  for (int i11 = 0; i11 <= n; ++i11) {
    long s12 = 3;
    for (int i13 = 0; i13 < m; i13 += 2) {
      if (!(B[i13 + n][i13] == 4)) s12 = s12 + a[c[i13 / 2] & 7];
      B[11 - i11][i11 - i13 + 10] = s12;
    }
    B[i11 - i11 + 10][(i11 + i11) % 4] = s12;
  }
  for (int i14 = 0; i14 < n; i14++) {
    int s15 = 3;
    for (int i16 = i14 + 1; i16 < 5; i16++) {
      s15 = s15 + c[i16];
      A[(i14 + i14) % 4][i16 + 2] = s15;
    }
    c[i14 + 2] = s15;
    for (int i17 = i14; i17 < m; i17++) {
      a[m + 1] = a[m + 1] > c[2 * i17 + 1] ? a[m + 1] : c[2 * i17 + 1];
      int s18 = 2;
      for (int i19 = n; i19 >= i17 + 1; i19--) {
        if (i19 >= 1 && i19 < m) s18 = (long)(s18 + 2.0f);
        A[i14 + n][i19 + n] = s18;
      }
      B[i14 / 2][(i17 + 2 * i17) / 3] = s18;
    }
  }
  if (n % 2 == 0 || (b[4] < -1)) {
    for (int i20 = 0; i20 < m; i20++) {
      if ((a[i20] == 0)) {
        A[n][i20 / 2] = A[i20][i20 + i20];
      }
      int s21 = 2;
      for (int i22 = 0; i22 < i20 / 2 + 2; i22 += 3) {
        if ((c[i20] == -2)) s21 = s21 + (i22 < n - 1 && (a[i22 % 3] != 1) ? c[i20] : a[i20]);
        a[i20] = s21;
      }
      a[i20] = s21;
    }
  }
#pragma endscop
}
