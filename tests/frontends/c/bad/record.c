struct point { float x, y; };
static float norm(struct point p) { return p.x * p.x + p.y * p.y; }
void f(int n, struct point p[n], float q[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    q[i] = norm(p[i]);
#pragma endscop
}
