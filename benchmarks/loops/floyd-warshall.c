/* The lengths of the shortest ways between all places. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int d[n][n])
{
#pragma scop
  for (int via = 0; via < n; via++)
    for (int from = 0; from < n; from++)
      for (int to = 0; to < n; to++)
        d[from][to] =
            d[from][to] < d[from][via] + d[via][to] ? d[from][to] : d[from][via] + d[via][to];
#pragma endscop
}
