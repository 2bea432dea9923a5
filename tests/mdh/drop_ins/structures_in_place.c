/* Arrays of structures are used where they lie: members of one type and of several, in and beside others. */
#include <stdio.h>
#define N 61
typedef struct { double re, im; } cplx;
struct particle { double x[3]; float mass; int kind; unsigned char tag; };
struct cell { struct { int a, b; } corner[2]; short low; };
struct world { int count; struct particle p[N]; cplx field[5][N][7]; };
static struct world earth, moon;
static struct cell cells[N];
#pragma pack(push, 1)
struct packed { char c; double d; float f; };
#pragma pack(pop)
static struct packed tight[N];
struct hidden { struct { double a; int b; }; int c; };
static struct hidden inner[N];
static int chosen[N];

static void field(struct world *w, const double *by, int t) {
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < 7; k++) {
        double re = w->field[i][j][k].re;
        w->field[i][j][k].re = re * by[k] - w->field[i][j][k].im * t;
        w->field[i][j][k].im = re + w->field[i][j][k].im * by[k];
      }
}
static void moved(struct particle *p, int n) {
  for (int i = 0; i < n; i++) {
    for (int d = 0; d < 3; d++)
      p[i].x[d] += p[i].mass * p[i].kind;
    p[i].kind = 3 - p[i].kind;
    p[i].mass = p[i].mass * 2;
    p[i].tag++;
  }
}
static void taken(const struct particle *p, struct particle *q, int n) {
  for (int i = 0; i < n; i++)
    q[i].x[chosen[i]] = p[i].x[chosen[n - 1 - i]] + p[i].tag;
}
static double weighted(const struct particle *p, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += p[i].mass * p[i].x[1];
  return sum;
}
static void cornered(struct cell *c, int n) {
  for (int i = 1; i < n; i++)
    for (int e = 0; e < 2; e++) {
      c[i].corner[e].b = c[i - 1].corner[1 - e].a + c[i].low;
      c[i].corner[e].a += e;
    }
}
static void tightened(struct packed *t, int n) {
  for (int i = 0; i < n; i++) { t[i].d = t[i].d + t[i].c; t[i].f = 2 * t[i].f; }
}
static void inward(struct hidden *h, int n) {
  for (int i = 0; i < n; i++) { h[i].c += h[i].b; h[i].a = h[i].c; }
}
static double scaled(struct particle *p, double *sum) {
  for (int d = 0; d < 3; d++) { p->x[d] = 2 * p->x[d]; sum[d] += p->x[d]; }
  return sum[0];
}
static double left(void) {
  double s = 0;
  for (int i = 0; i < N; i++) {
    struct particle *p = &earth.p[i], *q = &moon.p[i];
    s += i * (p->x[0] + 2 * p->x[1] + 3 * p->x[2] + p->mass + 5 * p->kind + p->tag);
    s += i * (q->x[0] + 3 * q->x[1] + q->x[2] + q->mass + 7 * q->kind + q->tag);
    s += cells[i].corner[0].a + i * cells[i].corner[0].b + 3 * cells[i].corner[1].a + cells[i].corner[1].b;
    s += tight[i].d * i + tight[i].f + tight[i].c + inner[i].a + i * inner[i].c + inner[i].b + cells[i].low;
    for (int k = 0; k < 7; k++) s += earth.field[i % 5][i][k].re * k + i * earth.field[i % 5][i][k].im;
  }
  return s;
}
int main(void) {
  double by[7], sum[3] = {0};
  for (int k = 0; k < 7; k++) by[k] = k % 3;
  for (int i = 0; i < N; i++) {
    chosen[i] = (i * 7) % 3;
    earth.p[i] = (struct particle){{i, i % 5, -i}, i % 4, i % 3, i};
    moon.p[i] = (struct particle){{-i, i % 7, i}, i % 2, i % 5, 255};
    cells[i].corner[0].a = i; cells[i].corner[1].a = -i; cells[i].low = i % 6;
    cells[i].corner[0].b = 2; cells[i].corner[1].b = 5;
    tight[i].c = i % 9; tight[i].d = i; tight[i].f = 1; inner[i].a = 0; inner[i].b = i; inner[i].c = 4;
    for (int j = 0; j < 5; j++)
      for (int k = 0; k < 7; k++) { earth.field[j][i][k].re = i % 11; earth.field[j][i][k].im = j - k; }
  }
  field(&earth, by, 2); printf("%g ", left());
  moved(earth.p, N); moved(moon.p + 3, 50); printf("%g ", left());
  taken(earth.p, moon.p, N); printf("%g ", left());
  taken(earth.p, earth.p + 1, N - 1); printf("%g ", left());
  taken(earth.p + 2, earth.p, N - 2); printf("%g ", left());
  taken(moon.p, moon.p, N); printf("%g ", left());
  printf("%g ", weighted(earth.p, N));
  cornered(cells, N); printf("%g ", left());
  tightened(tight, N); inward(inner, N); printf("%g ", left());
  scaled(&moon.p[4], sum); scaled(&moon.p[4], moon.p[4].x); printf("%g %g\n", sum[1], left());
  return 0;
}
