/* Running sums. */
void scan(const float x[N], float y[N])
{
#pragma scop
  float sum = 0;
  for (int i = 0; i < N; i++) {
    sum += x[i];
    y[i] = sum;
  }
#pragma endscop
}
