/* Probabilistic record linkage: for each new record the most similar known one, the first of several.
   Each field that agrees adds its weight. */
void record_linkage(const int new_records[N][4], const int known[M][4], const float weight[4],
                    float score[N], int match[N])
{
#pragma scop
  for (int i = 0; i < N; i++) {
    score[i] = -1;
    match[i] = -1;
    for (int j = 0; j < M; j++) {
      float s = (new_records[i][0] == known[j][0] ? weight[0] : 0)
              + (new_records[i][1] == known[j][1] ? weight[1] : 0)
              + (new_records[i][2] == known[j][2] ? weight[2] : 0)
              + (new_records[i][3] == known[j][3] ? weight[3] : 0);
      if (s > score[i]) {
        score[i] = s;
        match[i] = j;
      }
    }
  }
#pragma endscop
}
