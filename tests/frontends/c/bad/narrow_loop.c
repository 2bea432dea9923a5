void f(double a[400])
{
#pragma scop
  for (unsigned char i = 0; i <= 255; i++)
    a[i] = 0;
  for (char i = 0; i < 200; i += 3)
    a[i + 128] = 0;
#pragma endscop
}
