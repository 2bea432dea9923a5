#include <stdlib.h>
#include <stdio.h>
int main(void) {
  int n = 100;
  float *A = malloc(n * sizeof(float));
  for (int i = 0; i < n; i++) A[i] = i;
  printf("%f\n", A[3]);
  free(A);
  return 0;
}
