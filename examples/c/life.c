/* Conway's game of life on a board that has edges: conditions on data, and on where one is. */
#include <stdio.h>

#define H 60
#define W 83

static char board[H][W], after[H][W];

int main(void)
{
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++)
      board[y][x] = (char)((x * x + 3 * y * x + 7 * y) % 5 < 2);

#pragma scop
  for (int t = 0; t < 20; t++) {
    for (int y = 0; y < H; y++)
      for (int x = 0; x < W; x++) {
        int around = 0;
        for (int dy = -1; dy <= 1; dy++)
          for (int dx = -1; dx <= 1; dx++)
            if (y + dy >= 0 && y + dy < H && x + dx >= 0 && x + dx < W)
              around += board[y + dy][x + dx];
        around -= board[y][x];
        after[y][x] = around == 3 || (around == 2 && board[y][x] == 1);
      }
    for (int y = 0; y < H; y++)
      for (int x = 0; x < W; x++)
        board[y][x] = after[y][x];
  }
#pragma endscop

  long sum = 0, alive = 0;
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++) {
      alive += board[y][x];
      sum += (long)(3 * y + x) * board[y][x];
    }
  printf("life: %ld alive, %ld\n", alive, sum);
  return 0;
}
