struct device { int out; volatile int ready; };
_Atomic long count;
volatile double sum;
void f(int n, volatile int *p, struct device *d, int q[n])
{
  for (int i = 0; i < n; i++) {
    p[0] = i;
    q[i] = p[1] + d->ready;
    count += q[i];
    sum += q[i];
    *(volatile int *)&q[i] = i;
  }
}
