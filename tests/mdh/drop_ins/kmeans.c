/* Four rounds of k-means: a nearest centre, sums into elements that data choose. */
#include <stdio.h>
#define N 200
#define K 5
#define D 2
static int p[N][D], c[K][D], near[N], cnt[K], sum[K][D];
int main(void) {
  for (int i = 0; i < N; i++) {
    p[i][0] = (i * 37) % 101;
    p[i][1] = (i * 53) % 97;
  }
  for (int k = 0; k < K; k++) {
    c[k][0] = k * 20;
    c[k][1] = 90 - k * 15;
  }
#pragma scop
  for (int t = 0; t < 4; t++) {
    for (int i = 0; i < N; i++) {
      int best = 1 << 30;
      near[i] = 0;
      for (int k = 0; k < K; k++) {
        int d = 0;
        for (int e = 0; e < D; e++)
          d += (p[i][e] - c[k][e]) * (p[i][e] - c[k][e]);
        if (d < best) {
          best = d;
          near[i] = k;
        }
      }
    }
    for (int k = 0; k < K; k++) {
      cnt[k] = 0;
      for (int e = 0; e < D; e++)
        sum[k][e] = 0;
    }
    for (int i = 0; i < N; i++) {
      cnt[near[i]]++;
      for (int e = 0; e < D; e++)
        sum[near[i]][e] += p[i][e];
    }
    for (int k = 0; k < K; k++)
      if (cnt[k] > 0)
        for (int e = 0; e < D; e++)
          c[k][e] = sum[k][e] / cnt[k];
  }
#pragma endscop
  for (int k = 0; k < K; k++)
    printf("%d %d %d\n", c[k][0], c[k][1], cnt[k]);
}
