// n=6 m=4 p[24] q[30] A[6]
/* Rows, pointers to arrays, pointer arithmetic, globals, constants as extents. */
#define SIZE 5
void pointers(int n, int m, double (*A)[m], double *restrict p, float q[], double B[SIZE][SIZE])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      A[i][j] += *(*(A + i) + j) * 2;
      p[i + 3] = (&A[i][0])[j];
      *(q + i) += 1;
      q[2 * i + j] -= 0.5;
    }
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++)
      B[i][j] = (*(B + j))[i] + (sizeof(float) == 4) + sizeof(double);
#pragma endscop
}
