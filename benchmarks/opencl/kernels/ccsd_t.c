/* A contraction of coupled clusters, abcdef-gdab-efgc. */
void ccsd_t(const float X[NG][ND][NA][NB], const float Y[NE][NF][NG][NC], float Z[NA][NB][NC][ND][NE][NF])
{
#pragma scop
  for (int a = 0; a < NA; a++)
    for (int b = 0; b < NB; b++)
      for (int c = 0; c < NC; c++)
        for (int d = 0; d < ND; d++)
          for (int e = 0; e < NE; e++)
            for (int f = 0; f < NF; f++) {
              Z[a][b][c][d][e][f] = 0;
              for (int g = 0; g < NG; g++)
                Z[a][b][c][d][e][f] += X[g][d][a][b] * Y[e][f][g][c];
            }
#pragma endscop
}
