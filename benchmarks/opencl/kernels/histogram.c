/* How often each value occurs. */
void histogram(const unsigned char data[N], int count[256])
{
#pragma scop
  for (int b = 0; b < 256; b++)
    count[b] = 0;
  for (int i = 0; i < N; i++)
    count[data[i]] += 1;
#pragma endscop
}
