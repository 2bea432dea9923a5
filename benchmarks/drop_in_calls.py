"""Calls from C: drop-ins in C beside gcc's code for the same loops.

    python benchmarks/drop_in_calls.py [--seconds 1] [--only "dot product"]

Prints microseconds of a call, the median over the given seconds, for the program with its own loops and for
drop-ins under several commands, one after another on the same arrays. Needs gcc.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import polyloom

GEMM = """\
void work(int n, int m, int k, float C[n][m], float A[n][k], float B[k][m])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] *= 0.5f;
      for (int l = 0; l < k; l++)
        C[i][j] += A[i][l] * B[l][j];
    }
}
"""
GAUSSIAN = """\
void work(int n, int m, int k, float C[n][m], float A[n + 4][m + 4], float B[5][5])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] = 0;
      for (int p = 0; p < 5; p++)
        for (int q = 0; q < 5; q++)
          C[i][j] += B[p][q] * A[i + p][j + q];
    }
}
"""
DOT = """\
void work(int n, int m, int k, float *C, float *A, float *B)
{
  float sum = 0;
  for (int i = 0; i < n; i++)
    sum += A[i] * B[i];
  C[0] = sum;
}
"""
LARGEST = """\
#include <math.h>
void work(int n, int m, int k, float *C, float *A, float *B)
{
  float largest = 0;
  for (int i = 0; i < n; i++)
    largest = fmaxf(largest, fabsf(A[i]));
  C[0] = largest;
}
"""
TRANSPOSE = """\
void work(int n, int m, int k, float *C, float *A, float *B)
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      C[j * n + i] = A[i * m + j];
}
"""
COMPLEX = """\
typedef struct { float re, im; } number;
static void product(int n, number *c, const number *a, const number *b)
{
  for (int i = 0; i < n; i++) {
    c[i].re = a[i].re * b[i].re - a[i].im * b[i].im;
    c[i].im = a[i].re * b[i].im + a[i].im * b[i].re;
  }
}
void work(int n, int m, int k, float *C, float *A, float *B)
{
  product(n, (number *)C, (number *)A, (number *)B);
}
"""
GRAY = """\
typedef unsigned char byte;
static void gray(int n, byte *restrict d, const byte *restrict s)
{
  for (int i = 0; i < n; i++)
    d[i] = (77 * s[3 * i] + 150 * s[3 * i + 1] + 29 * s[3 * i + 2]) >> 8;
}
void work(int n, int m, int k, float *C, float *A, float *B)
{
  gray(n, (byte *)C, (byte *)A);
}
"""
NORM = """\
#include <math.h>
void work(int n, int m, int k, float C[n][m], float A[n][m], float *B)
{
  for (int i = 0; i < n; i++) {
    float mean = 0, far = 0;
    for (int j = 0; j < m; j++)
      mean += A[i][j];
    mean /= m;
    for (int j = 0; j < m; j++)
      far += (A[i][j] - mean) * (A[i][j] - mean);
    for (int j = 0; j < m; j++)
      C[i][j] = (A[i][j] - mean) / sqrtf(far / m + 1e-5f);
  }
}
"""
DISTANCES = """\
void work(int n, int m, int k, float C[n][m], float A[n][k], float B[m][k])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] = 0;
      for (int l = 0; l < k; l++)
        C[i][j] += (A[i][l] - B[j][l]) * (A[i][l] - B[j][l]);
    }
}
"""
SCALED = """\
void work(int n, int m, int k, float *restrict C, float *restrict A, float *B)
{
  for (int i = 0; i < n; i++)
    C[i] = 3 * A[i];
}
"""
HISTOGRAM = """\
typedef unsigned char byte;
static void counted(int n, int h[256], const byte x[n])
{
  for (int i = 0; i < n; i++)
    h[x[i]]++;
}
void work(int n, int m, int k, float *C, float *A, float *B)
{
  counted(n, (int *)C, (byte *)A);
}
"""
ADDED = """\
void work(int n, int m, int k, float *restrict C, float *restrict A, float *restrict B)
{
  for (int i = 0; i < n; i++)
    C[i] = A[i] + B[i];
}
"""
CASES = (
    ("gemm", GEMM, (10, 64, 500)),
    ("gemm", GEMM, (256, 256, 256)),
    ("gemm", GEMM, (1024, 1024, 1024)),
    ("gaussian 5 x 5", GAUSSIAN, (224, 224, 0)),
    ("gaussian 5 x 5", GAUSSIAN, (4096, 4096, 0)),
    ("dot product", DOT, (100_000, 0, 0)),
    ("largest", LARGEST, (100_000, 0, 0)),
    ("transpose", TRANSPOSE, (1000, 1000, 0)),
    ("complex products", COMPLEX, (20_000, 0, 0)),
    ("gray pixels", GRAY, (100_000, 0, 0)),
    ("layer norm", NORM, (60, 70, 0)),
    ("distances", DISTANCES, (60, 70, 80)),
    ("scaled", SCALED, (50, 0, 0)),
    ("histogram", HISTOGRAM, (1_000_000, 0, 0)),
    ("sum of arrays", ADDED, (1 << 24, 0, 0)),
)
MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
void work(int n, int m, int k, float *C, float *A, float *B);
static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
static int order(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
int main(int count, char **words)
{
  const int n = atoi(words[1]), m = atoi(words[2]), k = atoi(words[3]);
  const double end = now() + atof(words[count - 1]);
  const long cells = (n + 4L) * (m + 4) + (n + m) * (long)k + 25;
  float *C = calloc(cells, 4), *A = calloc(cells, 4), *B = calloc(cells, 4);
  static double times[10000];
  int runs = 0;
  for (long c = 0; c < cells; c++) { A[c] = c % 5; B[c] = c % 3; }
  do {
    const double start = now();
    work(n, m, k, C, A, B);
    times[runs++] = now() - start;
  } while (runs < 10000 && (now() < end || runs < 3));
  qsort(times, runs, sizeof *times, order);
  printf("%.3f\\n", times[runs / 2] * 1e6);
  return 0;
}
"""
WAYS = {
    "its loops, -O3 -march=native": ("original", "-O3 -march=native"),
    "the same, -ffast-math": ("original", "-O3 -march=native -ffast-math"),
    "drop-in, -O2 -fopenmp": ("any", "-O2 -fopenmp"),
    "drop-in, --param": ("special", "-O2 -fopenmp"),
    "drop-in, -O2, one thread": ("any", "-O2"),
    "any processor": ("any", "-O2 -fopenmp -DPOLYLOOM_ANY_PROCESSOR"),
    "-march=native": ("any", "-O2 -fopenmp -march=native"),
}


def measured(text: str, sizes: tuple[int, int, int], seconds: float, work: Path) -> list[float]:
    """Return microseconds for each of ``WAYS``."""
    source = work / "work.c"
    source.write_text(text)
    values = {name: size for name, size in zip("nmk", sizes, strict=True) if size}
    (work / "original").mkdir()
    (work / "original" / "work.c").write_text(text)
    polyloom.drop_in(source, target="c").write(work / "any")
    polyloom.drop_in(source, values, target="c").write(work / "special")
    found = []
    for number, (folder, flags) in enumerate(WAYS.values()):
        (work / folder / "main.c").write_text(MAIN)
        program = work / folder / f"program{number}"
        files = sorted(path.name for path in (work / folder).glob("*.c"))
        subprocess.run(
            ["gcc", "-w", *flags.split(), *files, "-o", program, "-lm"], cwd=work / folder, check=True
        )
        words = [program, *map(str, sizes), str(seconds)]
        found.append(float(subprocess.run(words, capture_output=True, text=True, check=True).stdout))
    return found


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="", help="cases whose names begin so")
    options = parser.parse_args()
    seconds = options.seconds
    print(f"{'':36}", *(f"{way:>30}" for way in WAYS))
    for name, text, sizes in (case for case in CASES if case[0].startswith(options.only)):
        with tempfile.TemporaryDirectory() as work:
            row = measured(text, sizes, seconds, Path(work))
        print(f"{name + ' ' + ' x '.join(map(str, sizes)):36}", *(f"{time:30,.2f}" for time in row))


if __name__ == "__main__":
    main()
