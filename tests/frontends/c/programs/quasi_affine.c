// n=11 m=-7 a[64]
/* Division and remainder towards zero, shifts, masks, ceilings and floors. */
#define floord(n, d) (((n) < 0) ? -((-(n) + (d) - 1) / (d)) : (n) / (d))
#define max(x, y) ((x) > (y) ? (x) : (y))
void quasi(int n, int m, int *a)
{
#pragma scop
  for (int i = -9; i < 10; i++) {
    a[20 + i / 2] += i;
    a[20 + i % 4] += 10 * i;
    a[20 + i / -3] += 3;
    a[30 + (i & 7)] -= i;
    a[40 + (i >> 2)] += 100;
    if (i % 3 == 0)
      a[20 + i] = i / 3;
    if (i % 3 == -2 || i == 5 / -2)
      a[21 + i] += 1000;
  }
  for (int i = floord(m, 2); i < max(3, n / 2); i++)
    a[50 + i] = i * (n + m) - (m / 2) + m % 4;
  a[63] = ~n ^ 5;
  a[(n << 1) + 3] = (1 << 4) | (n & 3);
#pragma endscop
}
