struct point { float x, y; };
void f(int n, struct point p[n], struct point q[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    q[i] = p[i];
#pragma endscop
}
