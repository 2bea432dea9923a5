/* Small programs, each of which shows that some line of the compiler is needed. `n` is 1, 2, 7 or 12. */

#include <math.h>
#define TWICE(x) 2 * x
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* Dependences, plans */

void running_sum(int n, int x[n]) {
  for (int i = 1; i < n; i++) x[i] += x[i - 1];
}

void recurrence(int n, int x[n], int y[n]) {
  for (int i = 1; i < n; i++) x[i] = x[i - 1] * 2 - y[i] * x[i];
}

void read_before_written(int n, int a[n + 1], int b[n], int c[n]) {
  for (int i = 0; i < n; i++) { a[i] = c[i]; b[i] = a[i + 1]; }
}

void written_twice(int n, int a[n + 1], int c[n]) {
  for (int i = 0; i < n; i++) { a[i] = 2 * c[i]; a[i + 1] = c[i] - 7; }
}

void perhaps_written(int n, int a[n], int y[n], int z[n]) {
  for (int i = 0; i < n; i++) { int t = 7; if (a[i] > 0) t = z[i]; y[i] = t + z[i]; }
}

void perhaps_written_before(int n, int a[n], int y[n], int t[1]) {
  for (int i = 0; i < n; i++) { if (a[i] > 0) t[0] = a[i]; y[i] = t[0]; }
}

void computed_place(int n, int p[n], int h[16], int y[n]) {
  for (int i = 0; i < n; i++) { h[p[i] & 15] = i; y[i] = h[3]; }
}

void histogram(int n, int p[n], int h[16]) {
  for (int i = 0; i < n; i++) h[p[i] & 15] += p[i];
}

void last_value(int n, int x[n], int y[n], int last[1]) {
  for (int i = 0; i < n; i++) { last[0] = x[i] * 2; y[i] = last[0] + 1; }
}

void scratch_row(int n, int a[n][n], int r[n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) r[j] = a[i][n - 1 - j];
    for (int j = 0; j < n; j++) a[i][j] = r[j] * 3 - a[i][j];
  }
}

void scalar_between(int n, int a[n][n], int y[n]) {
  for (int i = 0; i < n; i++) {
    int s = 0;
    for (int j = 0; j < n; j++) s = s * 2 + a[i][j];
    y[i] = s;
  }
}

void two_in_one_scalar(int n, int x[n], int y[n], int z[n]) {
  int t;
  for (int i = 0; i < n; i++) { t = x[i]; y[i] = t * t; t = y[i] - 3; z[i] = t + x[i]; }
}

void split_at_diagonal(int n, int p[n][n]) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) p[i][j] = LARGER(p[i][j], p[i][k] + p[k][j] - 9);
}

void from_the_other_end(int n, int x[n]) {
  for (int i = 0; i < n; i++) x[i] = x[n - 1 - i] * 2 + 1;
}

void shifted_up(int n, int x[n]) {
  for (int i = n - 1; i >= 1; i--) x[i] = x[i - 1] * 2 + 1;
}

void neighbours(int n, int x[n], int y[n]) {
  for (int i = 0; i < n - 1; i++) x[i] = x[i + 1] * y[i] - x[i];
}

void wavefront(int n, int a[n][n]) {
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++) a[i][j] = a[i - 1][j] - a[i][j - 1] + a[i - 1][j - 1] * 3;
}

void in_turn(int n, int x[n], int y[n]) {
  for (int t = 0; t < 5; t++) {
    for (int i = 1; i < n; i++) y[i] = x[i - 1] - x[i];
    for (int i = 1; i < n; i++) x[i] = y[i] * 2 - x[i];
  }
}

void map_between_sums(int n, int A[n][n], int x[n], int y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i];
  for (int i = 0; i < n; i++) x[i] = 5;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) y[i] += A[i][j];
}

void used_again(int n, int x[n], int y[n]) {
  int t[n];
  for (int i = 0; i < n; i++) t[i] = x[i] * 2;
  for (int i = 0; i < n; i++) y[i] = t[n - 1 - i] + t[i];
}

void perhaps_the_last(int n, int x[n], int last[1]) {
  for (int i = 0; i < n; i++) if (x[i] > 0) last[0] = x[i];
}

void last_of_each_row(int n, int a[n][n], int y[n], int r[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) { r[j] = a[i][j] + j; y[i] = r[j] - i; }
}

void last_of_a_range(int n, int x[n], int y[n], int last[1]) {
  for (int i = 5; i < n; i++) { last[0] = x[i] * 2; y[i] = last[0] + 1; }
}

void two_operators(int n, int x[n], int s[1]) {
  for (int i = 0; i < n; i++) s[0] += x[i];
  for (int i = 0; i < n; i++) s[0] *= 2;
  for (int i = 0; i < n; i++) s[0] += 1;
}

void operators_in_turn(int n, int x[n], int s[1]) {
  for (int i = 0; i < n; i++) { s[0] += x[i]; s[0] *= 2; }
}

void sum_in_scalar(int n, int a[n][n], int y[n]) {
  for (int i = 0; i < n; i++) {
    int s = 3;
    for (int j = 0; j < n; j++) s += a[i][j];
    y[i] = s;
  }
}

void sums_that_wait(int n, int x[n], int y[n], int z[n], int s[1]) {
  for (int i = 0; i < n; i++) {
    s[0] = 0;
    for (int j = 0; j < n; j++) s[0] += x[j] * i;
    for (int j = 0; j < n; j++) s[0] += y[j];
    z[i] = s[0];
  }
}

/* Reductions, scans, selections */

void growing(int n, int x[n], int s[1]) {
  for (int i = 0; i < n; i++) s[0] = s[0] + s[0] * x[i];
}

void scan_of_some(int n, int x[n], int y[n], int z[n]) {
  for (int i = 0; i < n; i++) { z[0] += x[i]; y[i] = z[0]; x[i] = 3; }
}

void winner_of_few(int n, int x[n], int best[n], int place[1]) {
  for (int i = 0; i < n; i++) best[i] = -2;
  for (int i = 0; i < n; i++) if (x[i] > best[0]) { best[0] = x[i]; place[0] = i; }
}

void first_of_equal(int n, int x[n], int best[1], int place[1]) {
  for (int i = 0; i < n; i++) if (best[0] < x[i] / 4) { best[0] = x[i] / 4; place[0] = i; }
}

void later_of_equal(int n, int x[n], int best[1], int place[1]) {
  for (int i = 0; i < n; i++) if (x[i] / 4 >= best[0]) { best[0] = x[i] / 4; place[0] = i; }
}

void pairs_of_sums(int n, int x[2 * n + 2]) {
  for (int i = 2; i < n; i++) x[i] = x[i - 2] + x[i];
}

void difference(int n, int x[n], int s[1]) {
  for (int i = 0; i < n; i++) s[0] = x[i] - s[0];
}

void sum_of_differences(int n, int x[n], int y[n], int s[1]) {
  for (int i = 0; i < n; i++) s[0] = s[0] - x[i] + y[i];
}

void some_of_a_sum(int n, int x[n], int s[1], int p[1]) {
  for (int i = 0; i < n; i++) if (x[i] > 1) s[0] += x[i];
  for (int i = 0; i < n; i++) if (x[i] > 1) p[0] *= x[i];
}

void largest_and_smallest(int n, int x[n], int m[2]) {
  for (int i = 0; i < n; i++) m[0] = m[0] < x[i] ? x[i] : m[0];
  for (int i = 0; i < n; i++) if (x[i] < m[1]) m[1] = x[i];
}

void kept_smallest(int n, float x[n], float m[1]) {
  for (int i = 0; i < n; i++) m[0] = m[0] < x[i] ? m[0] : x[i];
}

void some_kept(int n, float x[n], int y[n], float m[1]) {
  for (int i = 0; i < n; i++) if (y[i] > 0) m[0] = m[0] > x[i] ? m[0] : x[i];
}

void smallest_so_far(int n, float x[n], float y[n]) {
  for (int i = 1; i < n; i++) y[i] = y[i - 1] < x[i] ? y[i - 1] : x[i];
}

void sum_stored_later(int n, int x[n + 3], int y[n + 3]) {
  for (int i = 0; i < n; i++) {
    int s = 2;
    for (int j = i; j < i / 2 + 2; j++) { s += x[i]; y[j] = s; }
  }
}

void sum_stored_anywhere(int n, int x[n], int y[2 * n + 1]) {
  int s = 0;
  for (int i = 0; i < n; i++) { s += x[i]; y[2 * i - i / 2] = s; }
}

void sum_in_char(int n, signed char x[n], signed char s[1], int w[n]) {
  for (int i = 0; i < n; i++) s[0] = s[0] + x[i] * w[i];
}

void sum_of_halves(int n, double x[n], int s[1]) {
  for (int i = 0; i < n; i++) s[0] = s[0] + x[i] / 2;
}

void prefix_sums(int n, int x[n], int s[n]) {
  s[0] = x[0];
  for (int i = 1; i < n; i++) s[i] = s[i - 1] + x[i];
}

void prefix_sums_of_few(int n, int a[8], int s[8]) {
  s[0] = a[0];
  for (int i = 1; i < 8; i++) s[i] = s[i - 1] + a[i];
}

void prefix_sums_of_rows(int n, int a[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 1; j < n; j++) a[i][j] = a[i][j - 1] + a[i][j];
}

void prefix_of_a_triangle(int n, int a[n][n], int x[n]) {
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++) a[i][j] = a[i][j - 1] + x[j];
}

void kept_while_running(int n, int x[n], int y[n], int s[1]) {
  for (int i = 0; i < n; i++) { s[0] += x[i]; y[i] = s[0] * 2; }
}

void running_down(int n, int x[n], int y[n], int s[1]) {
  for (int i = n - 1; i >= 0; i--) { s[0] += x[i]; y[i] = s[0]; }
}

void place_of_largest(int n, int x[n], int best[1], int place[1]) {
  for (int i = 0; i < n; i++) if (x[i] > best[0]) { best[0] = x[i]; place[0] = i; }
}

void last_place_of_largest(int n, int x[n], int best[1], int place[1]) {
  for (int i = n - 1; i >= 0; i--) if (x[i] > best[0]) { best[0] = x[i]; place[0] = i; }
}

void winners(int n, int a[n][n], int best[n], int place[n]) {
  for (int i = 0; i < n; i++) {
    best[i] = -100;
    for (int j = 0; j < n; j++) if (a[i][j] < best[i]) { best[i] = a[i][j]; place[i] = j; }
  }
}

void sums_over_diagonals(int n, int a[n][n], int s[2 * n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) s[i + j] += a[i][j];
}

void sums_with_borders(int n, int a[n][n], int y[n]) {
  for (int i = 0; i < n; i++) y[i] = i;
  for (int i = 1; i < n - 1; i++)
    for (int j = 0; j < i; j++) y[i] += a[i][j];
  for (int i = 0; i < n; i++) y[i] = y[i] * 2 - 1;
}

void product_of_matrices(int n, int a[n][n], int b[n][n], int c[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      c[i][j] = c[i][j] * 3;
      for (int k = 0; k < n; k++) c[i][j] += a[i][k] * b[k][j];
    }
}

void transposed_sums(int n, int a[n][n], int y[n], int z[n]) {
  int t[n];
  for (int i = 0; i < n; i++) { t[i] = 0; for (int j = 0; j < n; j++) t[i] += a[j][i]; }
  for (int i = 0; i < n; i++) y[i] = t[i] * t[i] - z[i];
}

void triangle_in_place(int n, int a[n][n], int x[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) x[i] -= a[i][j] * x[j];
}

void every_other(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i += 2) y[i] += x[i] * i;
}

/* What C says */

void truncating(int n, int x[n], int y[n], int z[n]) {
  for (int i = 0; i < n; i++) { y[i] = (x[i] - 3) / 2; z[i] = (x[i] - 3) % 4; }
}

void truncating_subscripts(int n, int x[n + 8], int y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[4 + (i - 5) / 2] + x[4 + (i - 5) % 3];
}

void shifted_and_masked(int n, int x[n + 8], int y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[(i - 5 >> 1) + 4] + x[(i - 5) & 7];
}

void unsigned_differences(int n, unsigned x[n], unsigned y[n], int z[n]) {
  for (int i = 0; i < n; i++) { y[i] = x[i] - 9; z[i] = x[i] - 9 > 0; }
}

void unsigned_beside_signed(int n, int x[n], unsigned y[n], int z[n]) {
  for (int i = 0; i < n; i++) z[i] = x[i] < y[i];
}

void narrow(int n, int x[n], signed char c[n], unsigned char u[n], short s[n]) {
  for (int i = 0; i < n; i++) { c[i] = x[i] * 100; u[i] = x[i] * 50 - 1; s[i] = x[i] * 20000; }
}

void promoted(int n, unsigned char x[n], int y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i] - 300 + ~x[i];
}

void to_integers(int n, double x[n], int y[n], float z[n]) {
  for (int i = 0; i < n; i++) { y[i] = x[i] * 0.75 - 1; z[i] = (float)(x[i] / 3) * 3; }
}

void not_a_number(int n, double x[n], int y[n], double z[n]) {
  for (int i = 0; i < n; i++) {
    double q = (x[i] - x[i]) / (x[i] - x[i]);
    y[i] = !(q < 1);
    if (!(q >= 1)) z[i] = 7;
  }
}

void leaving(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i++) {
    if (i == 4) break;
    y[i] = x[i] + 1;
  }
  for (int i = 0; i < n; i++) {
    if (i % 3 == 1) continue;
    x[i] = y[i] * 2;
  }
}

void leaving_the_inner(int n, int a[n][n], int y[n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) { if (j > i) break; a[i][j] = i - j; }
    y[i] = 2 * i;
  }
}

void leaving_down(int n, int y[n]) {
  for (int i = n - 1; i >= 0; i--) {
    if (i == 2) break;
    y[i] = i * i;
  }
}

void after_the_loop(int n, int x[n + 3], int y[n]) {
  int i;
  for (i = 0; i < n; i++) y[i] = i;
  x[i] = 9;
}

void down_by_three(int n, int x[n]) {
  for (int i = n - 1; i >= 0; i -= 3) x[i] = i + 1;
}

void ends_early(int n, int x[n]) {
  for (int i = 0; i < n && i % 5 < 3; i++) x[i] = i + 1;
}

void sizes(int n, int y[n], double x[n]) {
  short t[3][5];
  for (int i = 0; i < n; i++) y[i] = sizeof(t) + sizeof(t[0]) * 100 + sizeof(x[0]) * i + sizeof(char);
}

void macros(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i++) y[i] = TWICE(x[i] + 1) - LARGER(x[i], i);
}

void forwarded(int n, int x[n + 2], int y[n]) {
  for (int i = 0; i < n; i++) { int k = i + 1; int m = 2; k = k + m - 1; y[i] = x[k] * m; }
}

void counted(int n, int x[n], int y[2 * n]) {
  int k = 0;
  for (int i = 0; i < n; i++) { y[k] = x[i]; y[k + 1] = -x[i]; k += 2; }
}

void both_move(int n, int x[n], int y[n]) {
  for (int i = 0, j = n - 1; i < n; i++, j--) y[i] = x[j] * 2;
}

void swapped(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i++) { int t = x[i]; x[i] = y[i]; y[i] = t; }
}

void condition_that_changes(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i++) if (x[i] > 0) { x[i] = -1; y[i] = 5; }
}

void otherwise(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i++) {
    if (i > 2 && x[i] > 0) y[i] = 1;
    else y[i] = 2;
  }
}


void pointers(int n, int x[n], int y[n]) {
  int *p = x + 1;
  for (int i = 0; i < n - 1; i++) y[i] = p[i] - *(p + i - 1);
}

void flat_rows(int n, int a[n * n], int y[n]) {
  for (int i = 0; i < n; i++) {
    y[i] = 0;
    for (int j = 0; j < n; j++) y[i] += a[i * n + j] * (j + 1);
  }
}

enum { FIRST = 3, SECOND, THIRD = SECOND * 2 };

void enumerated(int n, int y[n]) {
  for (int i = 0; i < n; i++) y[i] = SECOND * i + THIRD;
}

void wider(int n, long x[n], int y[n], unsigned u[n]) {
  for (int i = 0; i < n; i++) { y[i] = (u[i] * x[i]) >> 3; x[i] = x[i] - u[i] * 2l; }
}

void wrapped_constants(int n, signed char c[n], unsigned char u[n]) {
  for (int i = 0; i < n; i++) { c[i] = 200; u[i] = -3; }
}

void chosen_subscripts(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i < 3 ? i : n - 1 - i];
}

void counting_down(int n, int y[n]) {
  for (int i = n; --i >= 0;) y[i] = 3 * i;
}

void counting_down_behind_the_test(int n, int y[n]) {
  for (int i = n; i-- > 2;) y[i] = 3 * i;
}

void within_a_range(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i++) if (i > 0 && i < 4 && x[i] > -3) y[i] = x[i - 1];
}

void size_of_an_argument(int n, double x[n], int y[n]) {
  for (int i = 0; i < n; i++) y[i] = sizeof(x) / sizeof(x[0]) + i;
}

void read_again(int n, int a[n][n], int x[n], int y[n]) {
  for (int i = 0; i < n; i++) { x[i] = 0; for (int j = 0; j < n; j++) x[i] += a[i][j]; }
  for (int i = 0; i < n; i++) y[i] = x[i] - y[n - 1 - i];
}

void named_and_overwritten(int n, unsigned w[n], unsigned x[n], unsigned y[n]) {
  for (int i = 0; i < n; i++) {
    unsigned old = w[i];
    w[i] = x[i] + 1;
    y[i] += old * w[i];
  }
}

void named_sometimes(int n, unsigned x[n], unsigned w[n], unsigned y[n]) {
  for (int z = 0; z < 1; z++) {
    unsigned d;
    for (int i = 0; i < n; i++) {
      if (i == 0 || w[i] > 3) d = x[i];
      y[i] = d * d;
    }
  }
}

void changed_between(int n, unsigned x[n], unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++) {
    if (x[i] > 2) y[i] = 4;
    if (x[i] > 2) x[i] = w[i];
    if (!(x[i] > 2)) y[i] = w[i] + 9;
  }
}

void two_branches(int n, unsigned x[n], unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++) {
    if (y[i] > x[i]) y[i] -= w[i];
    if (y[i] <= x[i]) y[i] += w[i] + 1;
  }
}

void changed_at_one(int n, int x[n][n], int y[n]) {
  for (int i = 0; i < n; i++) { int t = x[i][0]; if (i == 1) x[1][0] = 5; y[i] = t; }
}

void steps_of_data(int n, int x[n], int y[n], int z[n]) {
  for (int i = 0; i < n; i++) {
    int k = x[i], s = 0, t = 0;
    while (k > 0) {
      if (k == 3) {
        k -= 2;
        continue;
      }
      s += k;
      k--;
      if (s > 9)
        break;
      t = s;
    }
    y[i] = s + 10 * k;
    z[i] = t;
  }
}

void an_element_of_steps(int n, int x[n], int y[n]) {
  for (int i = 0; i < n; i++)
    for (int k = x[i]; k < 4; k++)
      y[i] += k;
}
