/* Structures inside of structures: members that do not lie side by side. */
#include <stdio.h>
struct pt {
  int x, y;
};
struct box {
  struct pt lo, hi;
  int w[4];
};
static struct box bs[30];
static struct pt c[30];
int main(void) {
  for (int i = 0; i < 30; i++) {
    bs[i].lo.x = i;
    bs[i].lo.y = 2 * i;
    bs[i].hi.x = 3 * i + 1;
    bs[i].hi.y = i * i;
    for (int k = 0; k < 4; k++)
      bs[i].w[k] = i + k;
  }
#pragma scop
  for (int i = 0; i < 30; i++) {
    c[i].x = (bs[i].lo.x + bs[i].hi.x) / 2;
    c[i].y = (bs[i].lo.y + bs[i].hi.y) / 2;
    for (int k = 1; k < 4; k++)
      bs[i].w[0] += bs[i].w[k] * c[i].x;
  }
#pragma endscop
  long h = 0;
  for (int i = 0; i < 30; i++)
    h = h * 31 % 1000003 + c[i].x + c[i].y * 3 + bs[i].w[0];
  printf("%ld\n", h);
}
