// n=20 idx:0..6
/* Conditions, selections and subscripts that depend on data. */
void data(int n, int idx[n], float x[n], float hist[7], float best[1], int count[7])
{
#pragma scop
  for (int i = 0; i < n; i++)
    hist[idx[i]] += x[i];
  for (int i = 0; i < n; i++) {
    if (x[i] > best[0])
      best[0] = x[i];
    if (i > 2 && x[i] < 0 && idx[i - 3] > 1)
      count[idx[i]]++;
    else {
      count[idx[i] / 2] -= 2;
      x[i] = -x[i];
      count[3] += 1;
    }
    x[i] = x[i] > 1.0f ? x[i] - 1.0f : idx[i] ? x[i] : 0.5f;
    if (x[i] < 0.25f) {
      x[i] = x[i] * x[i];
      hist[i % 7] = x[i];
    } else
      hist[0] = 2.f;
  }
#pragma endscop
}
