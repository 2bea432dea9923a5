// n=9
struct point { float x, y; int tag; };
void structs(int n, struct point p[n], float out[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    out[i] = p[i].x * p[i].x + p[i].y * p[i].y;
    p[i].tag += i;
    (p + i)->y = -p[i].y;
  }
#pragma endscop
}
