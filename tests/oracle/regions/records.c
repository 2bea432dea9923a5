// n=6
struct m { int n; double e[10]; struct { float x; } in; unsigned char c; };
typedef struct { double x, y, z; } point;
struct m g[3]; int n0;
void f(int n, struct m *p, double b[20], struct m q[n], struct m s, point (*r)[4], point one)
{
  struct m loc[6];
#pragma scop
  for (int i = 0; i < n; i++) {
    p[i].e[1] = b[i] + one.x;
    q[i].e[3] = 1; q[i].e[2] = s.e[1] + p[2].e[0] + g[i % 3].in.x;
    r[i][2].y += r[i][1].x + n0;
    loc[i].c = i;
    b[i] = loc[i].e[0];
    g[i / 3].in.x = i;
  }
#pragma endscop
}
