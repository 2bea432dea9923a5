struct point { float x, y; };
struct point start(int n);
void f(int n, float z[n]) {
#pragma scop
  struct point p = start(n);
  for (int i = 0; i < n; i++)
    z[i] = p.x;
#pragma endscop
}
