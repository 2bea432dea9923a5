// n=5
#define M(x) x##_y
void f(int n, double a_y[n])
{
#pragma scop
  /* éé */ for (int i = 0; i < n; i++)
    M(a)[i] = 1; // ü
#pragma endscop
}
