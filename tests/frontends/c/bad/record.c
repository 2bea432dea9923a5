struct point { float x, y; };
float norm(struct point p);
void f(int n, struct point p[n], float q[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    q[i] = norm(p[i]);
#pragma endscop
}
