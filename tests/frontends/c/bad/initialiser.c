struct point { float x, y; };
void f(int n, float z[n]) {
#pragma scop
  struct point p = {1, 2};
  for (int i = 0; i < n; i++)
    z[i] = p.x;
#pragma endscop
}
