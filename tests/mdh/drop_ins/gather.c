/* Elements that data choose: read, counted, and summed where they are large. */
#include <stdio.h>
#define N 1000
#define M 77
static int idx[N];
static long val[M], out[N], cnt[M];
int main(void) {
  for (int i = 0; i < N; i++)
    idx[i] = (i * i) % M;
  for (int j = 0; j < M; j++)
    val[j] = j * j;
  long total = 0, big = 0;
#pragma scop
  for (int j = 0; j < M; j++)
    cnt[j] = 0;
  for (int i = 0; i < N; i++) {
    out[i] = val[idx[i]] * 2;
    cnt[idx[i]]++;
    total += out[i];
    if (out[i] > 1000)
      big++;
  }
#pragma endscop
  long h = 0;
  for (int i = 0; i < N; i++)
    h = (h * 31 + out[i]) % 1000003;
  for (int j = 0; j < M; j++)
    h = (h * 31 + cnt[j]) % 1000003;
  printf("%ld %ld %ld\n", h, total, big);
}
