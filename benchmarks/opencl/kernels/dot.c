/* The inner product of two vectors. */
void dot(const float x[N], const float y[N], float sum[1])
{
#pragma scop
  sum[0] = 0;
  for (int i = 0; i < N; i++)
    sum[0] += x[i] * y[i];
#pragma endscop
}
