"""Drop-ins in C: built with gcc, with OpenMP and without, equal to the program with its own loops."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from drop_in_programs import STRICT
from hypothesis import given
from hypothesis import strategies as st

from compiled_c import compiled as built_function
from polyloom import drop_in, load
from polyloom.cli.main import run as polyloom
from polyloom.diagnostics import PolyloomError
from polyloom.sources import Reading, load_tensors
from random_c import CProgram, c_programs
from random_tests import tried
from samples import one_in

EXAMPLES = Path(__file__).parents[3] / "examples" / "c"
CORPUS = Path(__file__).parents[1] / "drop_ins"
PROGRAMS = [path for path in (*EXAMPLES.glob("*.c"), *CORPUS.glob("*.c")) if "int main(" in path.read_text()]
QUICK = ("gemm.c", "running_sum.c", "boxes.c", "elimination.c", "unmarked.c", "stepped_pointers.c")
"""Those that show threads, work of one thread among them, structures, arrays of their own, no marks, and
pointers that are moved."""
GCC = shutil.which("gcc") or "cc"
FUNCTIONS = "polyloom_loops.c"


def made(source: Path, folder: Path, *options: str) -> Path:
    assert polyloom(["compile", str(source), "--target", "c", "-o", str(folder), *options]) == 0
    return folder


def built(folder: Path, *options: str, files: tuple[str, ...] = ("*.c",), compiler: str = GCC) -> Path:
    sources = [path.name for pattern in files for path in sorted(folder.glob(pattern))]
    command = [compiler, *STRICT, "-Wno-psabi", *options, *sources, "-o", "program", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "program"


def printed(program: Path, **variables: object) -> str:
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def expected(source: Path, folder: Path, *options: str) -> str:
    folder.mkdir()
    shutil.copy(source, folder)
    return printed(built(folder, *options))


def assert_equal(source: Path, folder: Path) -> None:
    wanted = expected(source, folder / "sequential")
    made(source, folder / "out")
    program = built(folder / "out", "-fopenmp")
    for threads in (1, 2, 5):
        assert printed(program, OMP_NUM_THREADS=threads) == wanted
    assert printed(built(folder / "out")) == wanted
    text = (folder / "out" / FUNCTIONS).read_text()
    (folder / "out" / FUNCTIONS).write_text(
        text.replace("    function(&member", "    if (0) function(&member")
    )
    assert printed(built(folder / "out")) != wanted, "it is the original loops that run"


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", one_in(3, QUICK, start=1))
def test_program(name: str, tmp_path: Path) -> None:
    source = next(path for path in PROGRAMS if path.name == name)
    assert_equal(source, tmp_path)
    file = tmp_path / "out" / FUNCTIONS
    file.write_text(file.read_text().replace("    function(&member", "    if (0) function(&member"))
    wanted = printed(tmp_path / "sequential" / "program")
    assert printed(built(tmp_path / "out")) != wanted, "it is the original loops that ran"


SCATTERED = """\
void stop(int);
void f(int n, const int *where, float *x, float y[n])
{
  stop(1);
%s
  for (int i = 0; i < n; i++) x[where[i]] += 1;
%s
  stop(2);
  for (int i = 0; i < n; i++) y[i] += 1;
}
"""


def test_what_nobody_marked_stays_where_it_has_no_call() -> None:
    made = drop_in(SCATTERED % ("", ""), target="c")
    (text,) = (text for name, text in made.files.items() if name.endswith(".c") and name != FUNCTIONS)
    (remark,) = made.remarks
    assert remark.code == "drop-in-left" and "line 6 stay as they are" in remark.message
    assert "polyloom_f_2(" in text and "polyloom_f(" not in text
    assert list(made.document["functions"]) == ["int polyloom_f_2(long long n, void *y)"]


def test_what_is_marked_and_has_no_call_is_refused() -> None:
    with pytest.raises(PolyloomError, match="how many elements `x` has"):
        drop_in(SCATTERED % ("#pragma scop", "#pragma endscop"), target="c")


def test_the_copy_of_a_pointer_in_memory_is_what_is_given(tmp_path: Path) -> None:
    """It was the pointer in memory, which may be another one by then."""
    made(CORPUS / "turned_pointers.c", tmp_path / "out")
    assert "(void *)x, (const void *)s[0].x))" in (tmp_path / "out" / "turned_pointers.c").read_text()


@pytest.mark.slow
@pytest.mark.ci
def test_pointers_that_are_read_behind_the_loops_are_moved() -> None:
    made = drop_in(CORPUS / "stepped_pointers.c", target="c")
    text = made.files["stepped_pointers.c"]
    assert "} else { d += polyloom_steps_of_d_in_all; }" in text
    assert "} else { o += polyloom_steps_of_o_in_all; w += polyloom_steps_of_w_in_all; }" in text
    assert "polyloom_stepped_pointers_turned(" in text and "steps_of_t" not in text


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.name not in QUICK], ids=lambda path: path.name)
def test_more_programs(path: Path, tmp_path: Path) -> None:
    assert_equal(path, tmp_path)


@pytest.mark.slow
@pytest.mark.ci
def test_threads_that_sleep(tmp_path: Path) -> None:
    """Who waits for the others looks for them a while; here each sleeps at once, and is woken."""
    made(EXAMPLES / "lu.c", tmp_path / "out")
    file = tmp_path / "out" / FUNCTIONS
    text = file.read_text()
    asleep = text.replace("LOOKS = 200, TURNS = 2000", "LOOKS = 0, TURNS = 0")
    assert asleep != text
    file.write_text(asleep)
    program = built(tmp_path / "out", "-fopenmp")
    wanted = expected(EXAMPLES / "lu.c", tmp_path / "sequential")
    for threads in (2, 5):
        assert printed(program, OMP_NUM_THREADS=threads) == wanted


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("compiler", ["address", "undefined"])
def test_under_sanitizers(compiler: str, tmp_path: Path) -> None:
    made(CORPUS / "elimination.c", tmp_path / "out")
    flags = [f"-fsanitize={compiler}", "-fno-sanitize-recover=all", "-g1"]
    program = built(tmp_path / "out", *flags, "-fopenmp")
    assert printed(program, OMP_NUM_THREADS=3) == expected(CORPUS / "elimination.c", tmp_path / "sequential")


@pytest.mark.slow
@pytest.mark.ci
def test_what_is_assumed_of_sizes_is_asked(tmp_path: Path) -> None:
    """Of few conditions; each array of the file gets its dimensions."""
    found = drop_in(CORPUS / "padded_rows.c", target="c")
    assert not [r for r in found.remarks if r.code in ("c-linearised", "drop-in-left")]
    text = found.files[FUNCTIONS]
    for condition in ("V >= 0 && Vp >= V", "Vp >= V", "C == NH * hs", "m == nb * bs"):
        assert f"!({condition}) || " in text


@pytest.mark.slow
@pytest.mark.ci
def test_loops_up_to_products_of_sizes_are_taken() -> None:
    """The product is given at the call, in 64 bits; nothing is asked of it that hardly ever holds."""
    made = drop_in(CORPUS / "products_of_sizes.c", target="c")
    text = made.files["products_of_sizes.c"]
    assert len(made.document["functions"]) == 14
    assert (
        "_biased((long long)batch, (long long)n, (long long)h, (long long)w, (long long)1LL * h * w, " in text
    )
    asked = made.files[FUNCTIONS].split("IS_THE_PROCESSOR || !")[1:]
    assert any(condition.startswith("(h_w == h * w) || ") for condition in asked)
    assert not any("h_w <" in condition or ">= h_w" in condition for condition in asked)


@pytest.mark.slow
@pytest.mark.ci
def test_rows_may_be_quotients_of_sizes_and_indices_stay_inside_by_choice() -> None:
    made = drop_in(CORPUS / "halved_images.c", target="c")
    functions = " ".join(made.document["functions"])
    names = ["halved", "of_colours", "doubled", "padded", "sides", "blurred", "rows", "fours", "tables"]
    assert [name for name in names if f"polyloom_halved_images_{name}(" not in functions] == []
    assert not [r for r in made.remarks if r.code in ("c-linearised", "drop-in-left")]


TAKEN = """\
typedef struct { float r, i; } cpx;
void take(int n, cpx *y) { for (int k = 0; k < n; k++) y[k].r = k; }
void set(int n, float *y) { for (int k = 0; k < n; k++) y[k] = k; }
"""


def test_functions_are_not_called_as_our_own() -> None:
    """``polyloom_take`` makes room, and ``polyloom_set`` is one of OpenCL's side."""
    names = {name.split("(")[0] for name in drop_in(TAKEN, target="c").document["functions"]}
    assert names == {"int polyloom_take_", "int polyloom_set_"}


@pytest.mark.slow
@pytest.mark.ci
def test_copies_and_sizes_are_asked_to_be_apart() -> None:
    (text,) = (
        t for n, t in drop_in(CORPUS / "overlapping_records.c", target="c").files.items() if n[0] == "o"
    )
    assert "(const char *)(x + ((long long)n)) <= (const char *)(y) || " in text
    assert "(const char *)(y + ((long long)m) * ((long long)n)) <= (const char *)(x)" in text
    (text,) = (t for n, t in drop_in(CORPUS / "sizes_in_memory.c", target="c").files.items() if n[0] == "s")
    assert "(const char *)(&n[0] + 1) <= (const char *)(y)" in text
    assert text.count("<= (const char *)&") == 2, (
        "of floats, and of members of one structure, it is not asked"
    )


@pytest.mark.slow
@pytest.mark.ci
def test_structures_are_used_where_they_lie() -> None:
    """In C no member is copied. A device gets numbers of one type as they lie, and copies of several."""
    made = drop_in(CORPUS / "structures_in_place.c", target="c")
    (text,) = (t for n, t in made.files.items() if n == "structures_in_place.c")
    assert "polyloom_take" not in text
    assert "sizeof h[0] == 16 && (char *)&h[0].b - (char *)&h[0] == 8" in text, "it is not there: C knows"
    text = drop_in(CORPUS / "structures_in_place.c", target="opencl").files["structures_in_place.c"]
    calls = text.split("by Polyloom, see")
    (field,) = (call for call in calls if "_field(" in call)
    (moved,) = (call for call in calls if "_moved(" in call)
    assert "polyloom_take" not in field and "polyloom_take" in moved


def test_structures_with_pointers_may_be_given_by_value() -> None:
    """Where a function leaves its copy, and the caller's, as it is."""
    made = drop_in(CORPUS / "images_by_value.c", target="c")
    names = [name.split("(")[0].removeprefix("int polyloom_") for name in made.document["functions"]]
    assert names == ["images_by_value_flipped", "images_by_value_left", "main"]
    assert not [r for r in made.remarks if "flipped" in r.message]


def test_elements_in_front_of_a_pointer_are_asked_for() -> None:
    made = drop_in(CORPUS / "in_front.c", target="c")
    names = [name.split("(")[0] for name in made.document["functions"]]
    assert "int polyloom_in_front_filtered" not in names and "int polyloom_in_front_delayed" in names
    assert "!(from >= 0) || " in made.files[FUNCTIONS]


OPENMP_THREADS = """\
    {
        if (omp_get_thread_num() == 0)
            shared.begun = omp_get_wtime(); /* others may come late to the start as well */
        take_part(omp_get_thread_num(), omp_get_num_threads(), &shared, function, arrays, integers);
        if (omp_get_thread_num() == 0) {
            shared.threads = omp_get_num_threads();
            shared.done = omp_get_wtime();
        }
    }
"""
NO_CLOCK = "static double omp_get_wtime(void) { return 0; }"
POSIX_THREADS = """\
struct job {
    int64_t me;
    struct shared *shared;
    loops *function;
    void *const *arrays;
    const int64_t *integers;
};
static void *do_job(void *given)
{
    const struct job *job = given;
    take_part(job->me, 3, job->shared, job->function, job->arrays, job->integers);
    return NULL;
}
static void take_parts(struct shared *shared, loops *function, void *const *arrays, const int64_t *integers)
{
    pthread_t threads[3];
    struct job jobs[3];
    for (int me = 0; me < 3; me++)
        jobs[me] = (struct job){me, shared, function, arrays, integers};
    for (int me = 1; me < 3; me++)
        pthread_create(&threads[me], NULL, do_job, &jobs[me]);
    do_job(&jobs[0]);
    for (int me = 1; me < 3; me++)
        pthread_join(threads[me], NULL);
}

static void run_shared("""


@pytest.mark.slow
@pytest.mark.ci
def test_barriers_under_the_thread_sanitizer(tmp_path: Path) -> None:
    """It does not know how OpenMP's threads wait for each other, so they are POSIX's here.

    One that does not wait is caught; those that sleep at once run, too.
    """
    folder = made(EXAMPLES / "lu.c", tmp_path / "out")
    text = (folder / FUNCTIONS).read_text()
    text = text.replace(
        f"#pragma omp parallel\n{OPENMP_THREADS}", "take_parts(&shared, function, arrays, integers);\n"
    )
    text = text.replace("static void run_shared(", POSIX_THREADS, 1).replace("#include <omp.h>", NO_CLOCK)
    asleep = text.replace("LOOKS = 200, TURNS = 2000", "LOOKS = 0, TURNS = 0")
    broken = text.replace("        await_end(meeting, before);\n        return;", "        return;")
    assert "take_parts(&shared" in text and len({text, asleep, broken}) == 3
    wanted = expected(EXAMPLES / "lu.c", tmp_path / "sequential")
    flags = ["-std=gnu11", "-O1", "-g1", "-fsanitize=thread", "-D_OPENMP=1", "-pthread"]
    for each, is_right in ((text, True), (asleep, True), (broken, False)):
        (folder / FUNCTIONS).write_text(each)
        program = built(folder, *flags)
        for _ in range(1 if is_right else 10):  # threads that take turns on a core do not always race
            done = subprocess.run([program], capture_output=True, text=True, timeout=300)
            if "data race" in done.stderr:
                break
        assert ("data race" in done.stderr) is not is_right
        assert not is_right or (done.returncode, done.stdout) == (0, wanted)


TRIANGLE = """\
#include <stdio.h>
enum { N = 6, M = 60000 };
static double A[N][N], B[N][M];
int main(void) {
  for (int i = 0; i < N; i++) for (int k = 0; k < N; k++) A[i][k] = i + k;
  for (int i = 0; i < N; i++) for (int j = 0; j < M; j++) B[i][j] = (i * j) % 7;
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++)
      for (int k = i + 1; k < N; k++) B[i][j] += A[k][i] * B[k][j];
#pragma endscop
  double sum = 0;
  for (int i = 0; i < N; i++) for (int j = 0; j < M; j++) sum += B[i][j] * (j % 3);
  printf("%g\\n", sum);
}
"""
ADVICE = """\
#include <stdint.h>
#include <stdio.h>
int __wrap_madvise(void *memory, size_t bytes, int advice);
int __wrap_madvise(void *memory, size_t bytes, int advice)
{
    printf("advice %d for %zu bytes at %d\\n", advice, bytes, (int)((uintptr_t)memory % (2 << 20)));
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.skipif(sys.platform != "linux", reason="Linux has large pages")
def test_large_arrays_of_its_own_lie_in_large_pages(tmp_path: Path) -> None:
    source = tmp_path / "triangle.c"
    source.write_text(TRIANGLE)
    wanted = expected(source, tmp_path / "sequential")
    folder = made(source, tmp_path / "out")
    assert printed(built(folder)) == wanted, "ISO C has no large pages"
    (folder / "advice.c").write_text(ADVICE)
    program = built(folder, "-std=gnu11", "-Wl,--wrap=madvise")
    assert printed(program) == f"advice 14 for {4 << 20} bytes at 0\n{wanted}"


def test_scalars_of_its_own_lie_in_the_frame_of_the_call(tmp_path: Path) -> None:
    source = tmp_path / "place.c"
    source.write_text(
        "void place(int n, const double a[n], int at[1]) {\n"
        "  int k = 0;\n"
        "  for (int i = 1; i < n; i++) if (a[i] > a[k]) k = i;\n"
        "  at[0] = k;\n}\n"
    )
    text = drop_in(source, target="c").files[FUNCTIONS]
    call = text[text.index("int polyloom_place(") :]
    assert "_Alignas(64) int32_t k[1];" in call
    assert "room(" not in call


@pytest.mark.slow
@pytest.mark.ci
def test_small_rows_of_its_own_lie_there_too_and_large_ones_do_not(tmp_path: Path) -> None:
    """Under a sanitizer no frame is left: rows of 2 and of 2000 elements."""
    source = tmp_path / "rows.c"
    source.write_text(
        "#include <stdio.h>\n"
        "void rows(int n, const float a[n][n], float y[n]) {\n"
        "  for (int i = 0; i < n; i++) {\n    float m = a[i][0], s = 0;\n"
        "    for (int j = 1; j < n; j++) if (a[i][j] > m) m = a[i][j];\n"
        "    for (int j = 0; j < n; j++) s += a[i][j] * m;\n    y[i] = s;\n  }\n}\n"
        "static float a[2000][2000], y[2000];\n"
        "int main(void) {\n  for (int n = 0; n <= 2000; n = n ? n * 10 : 2) {\n"
        "    for (int i = 0; i < n * n; i++) ((float *)a)[i] = i % 7;\n    rows(n, (void *)a, y);\n"
        '    double s = 0;\n    for (int i = 0; i < n; i++) s += y[i];\n    printf("%g\\n", s);\n  }\n}\n'
    )
    wanted = expected(source, tmp_path / "sequential")
    folder = made(source, tmp_path / "out")
    assert "room_or(frame[0], " in (folder / FUNCTIONS).read_text()
    assert printed(built(folder, "-fsanitize=address,undefined", "-fopenmp"), OMP_NUM_THREADS=2) == wanted


SMOOTH = """\
#include <stdio.h>
#include <string.h>
#ifndef N
#define N 50
#endif
void smooth(int n, float *y, float *x) {
#pragma scop
  for (int t = 0; t < 3; t++) {
    for (int i = 1; i < n - 1; i++) y[i] = x[i - 1] + 2 * x[i + 1] + N;
    for (int i = 1; i < n - 1; i++) x[i] = y[i] * 0.25f;
  }
#pragma endscop
}
static float data[400];
int main(void) {
  for (int k = 0; k < 400; k++) data[k] = k % 17;
  smooth(100, data, data + 100); /* apart */
  smooth(100, data, data + 99);
  smooth(100, data + 1, data + 98); /* touching in what is read */
  smooth(50, data + 3, data);
  smooth(50, data, data);
  smooth(0, data, data + 100);
  smooth(-5, data, data + 100);
  smooth(2, data, data + 100);
  smooth(3, data, data + 100);
  for (int k = 0; k < 400; k++) printf("%a\\n", data[k]);
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("options", [(), ("--param", "n=50")], ids=["any", "special"])
def test_arguments_that_overlap_and_other_sizes_run_the_original_loops(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    source = tmp_path / "smooth.c"
    source.write_text(SMOOTH)
    wanted = expected(source, tmp_path / "sequential")
    folder = made(source, tmp_path / "out", *options)
    assert printed(built(folder, "-fopenmp"), OMP_NUM_THREADS=3) == wanted
    assert ("n == 50" in (folder / FUNCTIONS).read_text()) == bool(options)
    text = (folder / FUNCTIONS).read_text()
    (folder / FUNCTIONS).write_text(text.replace("is_used && (one", "!is_used && (one"))
    assert printed(built(folder, "-fopenmp"), OMP_NUM_THREADS=3) != wanted, "nothing depends on the check"


UNTOUCHED = """\
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
void lift(int n, const int *f, double *restrict a, double *restrict b) {
#pragma scop
  for (int i = 0; i < n; i++)
    if (f[i] > 0) a[i + 1] = 2.0 * i;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (f[i] > 0 && f[j] > i) b[i] += j;
#pragma endscop
}
/* Elements in front of a page that may not be touched. */
static double *half(long page) {
  char *both = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(both + page, page, PROT_NONE);
  return (double *)(both + page) - 8;
}
int main(void) {
  const int f[12] = {3, 0, 9, 1, 5, 6, 7, 0, 0, -1, 0, 0};
  double *a = half(sysconf(_SC_PAGESIZE)), *b = half(sysconf(_SC_PAGESIZE));
  lift(12, f, a, b);
  for (int i = 0; i < 8; i++) printf("%g %g\\n", a[i], b[i]);
  return 0;
}
"""


def test_elements_whose_condition_never_holds_need_not_exist(tmp_path: Path) -> None:
    source = tmp_path / "lift.c"
    source.write_text(UNTOUCHED)
    wanted = expected(source, tmp_path / "sequential")
    assert printed(built(made(source, tmp_path / "out"), "-fopenmp"), OMP_NUM_THREADS=3) == wanted


@pytest.mark.slow
@pytest.mark.ci
def test_another_value_of_a_macro_runs_the_original_loops(tmp_path: Path) -> None:
    source = tmp_path / "smooth.c"
    source.write_text(SMOOTH)
    folder = made(source, tmp_path / "out")
    for value in (50, 51):
        wanted = expected(source, tmp_path / f"sequential{value}", f"-DN={value}")
        assert printed(built(folder, "-fopenmp", f"-DN={value}")) == wanted


THREADS = """\
#include <stdio.h>
enum { N = 300 };
void add(int n, double A[n][n], double B[n][n]) {
  double x[N];
#pragma scop
  for (int t = 0; t < 4; t++) {
    for (int i = 0; i < n; i++) { x[i] = 0; for (int j = 0; j < n; j++) x[i] += A[i][j] * B[j][i]; }
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) A[i][j] += x[j] - x[i] + B[i][j];
  }
#pragma endscop
}
static double A[5][N][N], B[N][N];
int main(void) {
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) B[i][j] = (3 * i + j) % 5;
#pragma omp parallel for num_threads(3)
  for (int k = 0; k < 5; k++) add(N - k, A[k], B);
  for (int k = 0; k < 5; k++) for (int i = 0; i < N; i++) printf("%g %g\\n", A[k][i / 7][i], A[k][i][0]);
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_calls_from_parallel_regions_and_fewer_threads_than_asked_for(tmp_path: Path) -> None:
    source = tmp_path / "threads.c"
    source.write_text(THREADS)
    wanted = expected(source, tmp_path / "sequential")
    program = built(made(source, tmp_path / "out"), "-fopenmp")
    assert printed(program) == wanted
    assert printed(program, OMP_MAX_ACTIVE_LEVELS=2, OMP_NUM_THREADS=2) == wanted
    assert printed(program, OMP_DYNAMIC="true", OMP_THREAD_LIMIT=2, OMP_NUM_THREADS=4) == wanted


LAYER = """\
lair fc(M, N): float32 new[M][N], float32 x[N] -> float32 y[M]
{
  all (i, j) in (M, N)
    y[i] += new[i][j] * x[j]
}
"""
CALLER = """\
#include <cstdio>
#include "polyloom_loops.h"
int main() {
  static float W[113][70], x[70], y[113];
  for (int i = 0; i < 113; i++) for (int j = 0; j < 70; j++) W[i][j] = i - 3 * j;
  for (int j = 0; j < 70; j++) x[j] = j % 9;
  if (!polyloom_fc(W, x, y) || polyloom_fc(W, x, x) || polyloom_fc(W, x, W[112])) return 1;
  for (float value : y) std::printf("%g ", value);
}
"""


def test_a_layer_is_a_function_for_c_plus_plus(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    layer = tmp_path / "fc.lair"
    layer.write_text(LAYER)
    folder = made(layer, tmp_path / "out", "-D", "M=113", "-D", "N=70")
    assert "restrict" not in (folder / "polyloom_loops.h").read_text()
    (folder / "caller.cpp").write_text(CALLER)
    as_c99 = [GCC, *STRICT, "-std=c99", "-Werror=implicit-function-declaration"]
    subprocess.run([*as_c99, "-fopenmp", "-c", FUNCTIONS], cwd=folder, check=True)
    command = [compiler, "-Wall", "-Wextra", "-Werror", "caller.cpp", "polyloom_loops.o", "-fopenmp", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    W, x = np.arange(113)[:, None] - 3 * np.arange(70), np.arange(70) % 9
    assert [float(word) for word in printed(folder / "a.out").split()] == (W @ x).tolist()


@pytest.mark.slow
@pytest.mark.ci
def test_a_model_is_a_function_of_its_weights(tmp_path: Path) -> None:
    source = EXAMPLES.parent / "models" / "cnn.onnx"
    folder = made(source, tmp_path / "out")
    subprocess.run([GCC, "-O2", "-shared", "-fPIC", FUNCTIONS, "-o", "cnn.so", "-lm"], cwd=folder, check=True)
    model = load_tensors(source, Reading()).model
    assert model is not None
    image = np.random.default_rng(0).normal(size=(1, 1, 28, 28)).astype(np.float32)
    arrays = {**model.constants, "image": image, "digit": np.zeros((1, 10), np.float32)}
    head = (folder / "polyloom_loops.h").read_text().partition("int polyloom_cnn(")[2].partition(")")[0]
    pointers = [arrays[word.split("*")[1]].ctypes.data_as(ctypes.c_void_p) for word in head.split(",")]
    assert ctypes.CDLL(str(folder / "cnn.so")).polyloom_cnn(*pointers) == 1
    np.testing.assert_allclose(arrays["digit"], load(source)(image), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.ci
def test_for_any_processor(tmp_path: Path) -> None:
    folder = made(EXAMPLES / "gemm.c", tmp_path / "out")
    program = built(folder, "-DPOLYLOOM_ANY_PROCESSOR")
    assert printed(program) == expected(EXAMPLES / "gemm.c", tmp_path / "sequential")
    text = (folder / FUNCTIONS).read_text()
    assert "#define IS_THE_PROCESSOR 1" in text
    (folder / FUNCTIONS).write_text(text.replace("#define IS_THE_PROCESSOR 1", "#define IS_THE_PROCESSOR 0"))
    program = built(folder, "-DPOLYLOOM_ANY_PROCESSOR")
    assert printed(program) == expected(EXAMPLES / "gemm.c", tmp_path / "again")


@pytest.mark.slow
@pytest.mark.ci
def test_the_command_of_the_manifest_builds_it(tmp_path: Path) -> None:
    folder = made(EXAMPLES / "gemm.c", tmp_path / "out")
    command = (folder / "build.txt").read_text().splitlines()[0]
    assert command == "cc -O2 -fopenmp -Wno-psabi gemm.c polyloom_loops.c -lm"
    done = subprocess.run(["sh", "build.txt"], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stderr.count("warning") == done.stderr.count("ignoring ‘#pragma")
    assert printed(folder / "a.out") == expected(EXAMPLES / "gemm.c", tmp_path / "sequential")


def test_threads_share_what_is_large(tmp_path: Path) -> None:
    folder = made(EXAMPLES / "gemm.c", tmp_path / "out", "--param", "n=4", "--param", "m=4", "--param", "k=4")
    text = (folder / FUNCTIONS).read_text()
    assert "run(gemm_loops_special, &pace, 0," in text
    assert "run(gemm_loops, &pace, n * m * k >= 16384," in text


def test_strict_programs_do_not_contract(tmp_path: Path) -> None:
    text = "void f(double *y, double *x) { for (int i = 0; i < 64; i++) y[i] = x[i] * x[i] + y[i]; }\n"
    source = tmp_path / "f.c"
    source.write_text(text)
    folder = made(source, tmp_path / "out", "--fp", "strict")
    command = [GCC, "-O2", "-shared", "-fPIC", FUNCTIONS, "-o", "loops.so"]
    subprocess.run(command, cwd=folder, check=True)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=64), rng.normal(size=64)
    wanted = y + x * x
    function = ctypes.CDLL(str(folder / "loops.so")).polyloom_f
    pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (x, y))
    first, second = pointers
    names = (folder / "polyloom_loops.h").read_text()
    order = (first, second) if names.index("x[") < names.index("y[") else (second, first)
    assert function(*order) == 1
    assert y.tolist() == wanted.tolist()


SOFTMAX = """\
#include <math.h>
void softmax(int n, int m, float x[n][m]) {
  for (int i = 0; i < n; i++) {
    float most = x[i][0], s = 0;
    for (int j = 1; j < m; j++) most = x[i][j] > most ? x[i][j] : most;
    for (int j = 0; j < m; j++) { x[i][j] = expf(x[i][j] - most); s += x[i][j]; }
    for (int j = 0; j < m; j++) x[i][j] /= s;
  }
}
void upper(int n, const unsigned char *restrict s, unsigned char *restrict d) {
  for (int i = 0; i < n; i++) d[i] = s[i] >= 'a' && s[i] <= 'z' ? s[i] - 32 : s[i];
}
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_exponentials_are_right_where_sums_may_have_any_order(compiler: str, tmp_path: Path) -> None:
    """An exponential of vectors rounds by x + 2^23 - 2^23, which is x where -ffast-math may say so."""
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    (tmp_path / "k.c").write_text(SOFTMAX)
    folder = made(tmp_path / "k.c", tmp_path / "out")
    compiled = [compiler, "-O2", "-ffast-math", "-w", "-fPIC", "-c", FUNCTIONS, "-o", "loops.o"]
    subprocess.run(compiled, cwd=folder, check=True)
    # Linked with -ffast-math, it would have this whole process take denormal numbers for 0
    linked = [compiler, "-shared", "loops.o", "-o", "loops.so", "-lm"]
    subprocess.run(linked, cwd=folder, check=True)
    x = np.random.default_rng(1).normal(size=(5, 70)).astype(np.float32)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    wanted = powers / powers.sum(axis=1, keepdims=True)
    function = ctypes.CDLL(str(folder / "loops.so")).polyloom_softmax
    rows, columns = map(ctypes.c_longlong, x.shape)
    assert function(rows, columns, x.ctypes.data_as(ctypes.c_void_p)) == 1
    assert np.abs(x - wanted).max() < 1e-6


@pytest.mark.slow
@pytest.mark.ci
def test_gcc_is_told_of_each_function_what_is_of_it_alone(tmp_path: Path) -> None:
    """Loops that add choices are not if-converted; upper case beside them took eight times as long."""
    (tmp_path / "k.c").write_text(SOFTMAX)
    text = (made(tmp_path / "k.c", tmp_path / "out") / FUNCTIONS).read_text()
    before, inside = text.split("no-tree-loop-if-convert")
    inside, *_ = inside.split("#pragma GCC pop_options")
    assert "push_options" in before.rsplit("#endif", 1)[1]
    assert "softmax_loops_1(" in inside and "upper_loops_1(" not in inside
    command = [GCC, "-O2", "-fopenmp", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-c", FUNCTIONS]
    subprocess.run(command, cwd=tmp_path / "out", check=True)


LAGS = """\
#include <stdio.h>
#include <stdlib.h>
void correlate(int n, int m, const float *restrict s, float *restrict r) {
#pragma scop
  for (int l = 0; l < m; l++) {
    float a = 0;
    for (int i = 0; i < n - l; i++) a += s[i] * s[i + l];
    r[l] = a;
  }
#pragma endscop
}
int main(void) {
  static float s[700], r[100];
  for (int i = 0; i < 700; i++) s[i] = i % 13 - 6;
  for (int m = 1; m < 100; m += 33) {
    correlate(700 - m, m, s, r);
    for (int l = 0; l < m; l++) printf("%g\\n", r[l]);
  }
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("options", [("-fopenmp",), ()], ids=["openmp", "alone"])
def test_sums_beside_vectors_are_combined_in_any_order(options: tuple[str, ...], tmp_path: Path) -> None:
    """Sums of small integers in floats are the same in any order."""
    source = tmp_path / "correlate.c"
    source.write_text(LAGS)
    folder = made(source, tmp_path / "out")
    assert "IN_ANY_ORDER(+, total)" in (folder / FUNCTIONS).read_text()
    assert printed(built(folder, "-Wall", "-Werror", *options)) == expected(source, tmp_path / "sequential")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for vectors of AVX2")
def test_plain_loops_are_in_vectors_without_being_asked_for(tmp_path: Path) -> None:
    """Steps that depend on each other, of loops that run in order: -O2 alone makes no vectors of them."""
    source = tmp_path / "f.c"
    source.write_text("""void f(int n, double a, double x[n + 1]) {
  for (int t = 0; t < n; t++)
    for (int i = 0; i < n - t; i++) x[i] = a * x[i] + (1 - a) * x[i + 1];
}
""")
    folder = made(source, tmp_path / "out")
    subprocess.run([GCC, "-O2", "-S", FUNCTIONS, "-o", "f.s"], cwd=folder, check=True)
    text = (folder / "f.s").read_text()
    assert "mulpd" in text or "add213pd" in text or "add132pd" in text or "add231pd" in text


@pytest.mark.parametrize("chosen", [True, False])
def test_gcc_keeps_sums_of_choices_as_they_are(chosen: bool, tmp_path: Path) -> None:
    term = "(at[i] == {0} ? x[i] : 0)" if chosen else "x[i] * {0}"
    sums = "".join(f" s[0] = s[0] / 2 + {term.format(k)};" for k in range(2))
    source = tmp_path / "f.c"
    source.write_text(
        f"void f(double s[1], int *at, double *x) {{ for (int i = 0; i < 64; i++) {{{sums} }} }}\n"
    )
    text = (made(source, tmp_path / "out") / FUNCTIONS).read_text()
    assert ("no-tree-loop-if-convert" in text) is chosen


ROWS_OF_SUMS = """void f(int n, int m, int a[40], int b[40]) {
  for (int i = 0; i <= m; i++)
    for (int j = 0; j <= n; j++) {
      int s = 0;
      for (int k = 0; k <= n; k++) s += a[0];
      b[2 * j] = s;
    }
}
"""


def test_functions_of_parts_get_the_sizes_of_rows(tmp_path: Path) -> None:
    """One of them says ``n`` in the shape of an array alone."""
    source = tmp_path / "f.c"
    source.write_text(ROWS_OF_SUMS)
    folder = made(source, tmp_path / "out")
    assert "[n + 1])" in (folder / FUNCTIONS).read_text()
    subprocess.run([GCC, "-c", "-fopenmp", "-Werror", FUNCTIONS], cwd=folder, check=True)


@tried(6)
@given(program=c_programs(), seed=st.integers(0, 99), n=st.integers(1, 7), m=st.integers(2, 6))
@pytest.mark.slow
@pytest.mark.ci
def test_random_programs(program: CProgram, seed: int, n: int, m: int) -> None:
    arguments = {"n": n, "m": m, **program.data(seed)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "original").mkdir()
        wanted = built_function(program.text, "kernel", folder / "original")(arguments)
        (folder / "kernel.c").write_text(program.text)
        drop_in(folder / "kernel.c", target="c").write(folder / "out")
        sources = ["kernel.c", FUNCTIONS]
        flags = ["-O1", "-fwrapv", "-ffp-contract=off", "-w", "-fopenmp", "-shared", "-fPIC"]
        subprocess.run([GCC, *flags, *sources, "-o", "k.so", "-lm"], cwd=folder / "out", check=True)
        arrays = {k: v.copy() for k, v in arguments.items() if isinstance(v, np.ndarray)}
        passed = [
            arrays[k].ctypes.data_as(ctypes.c_void_p) if k in arrays else v for k, v in arguments.items()
        ]
        ctypes.CDLL(str(folder / "out" / "k.so")).kernel(*passed)
    for key, array in wanted.items():
        np.testing.assert_array_equal(arrays[key], array)


def test_what_is_no_drop_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PolyloomError) as caught:
        drop_in(EXAMPLES / "gemm.c", target="fortran")
    assert [d.code for d in caught.value.diagnostics] == ["target-unknown"]
    arguments = [
        "compile",
        str(EXAMPLES / "gemm.c"),
        "--target",
        "c",
        "--device",
        "0",
        "-o",
        str(tmp_path / "o"),
    ]
    assert polyloom(arguments) == 1
    assert "error[drop-in-device]" in capsys.readouterr().err and not (tmp_path / "o").exists()


def test_files_of_one_program_have_static_functions_of_one_name(tmp_path: Path) -> None:
    text = (
        "static void step(int n, int *x) {{ for (int i = 0; i < n; i++) x[i] += {by}; }}\n"
        "void {name}(int n, int *x) {{ step(n, x); step(n - 1, x + 1); }}\n"
        "void {name}_zeros(int n, int *x) {{ for (int i = 0; i < n; i++) x[i] = 0; }}\n"
    )
    for name, by in (("first", 3), ("second", 5)):
        (tmp_path / f"{name}.c").write_text(text.format(name=name, by=by))
        made(tmp_path / f"{name}.c", tmp_path / name)
        shutil.copy(tmp_path / name / f"{name}.c", tmp_path)
        shutil.copy(tmp_path / name / FUNCTIONS, tmp_path / f"{name}_loops.c")
        shutil.copy(tmp_path / name / "polyloom_loops.h", tmp_path)
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\nvoid first(int n, int *x);\nvoid second(int n, int *x);\n"
        'int main(void) { static int x[99]; first(99, x); second(98, x); printf("%d %d %d\\n", x[0], x[1], '
        "x[98]); return 0; }\n"
    )
    assert printed(built(tmp_path)) == "8 16 6\n"


@pytest.mark.parametrize(
    "options",
    [(), ("-DDOUBLE",), ("-DFAST",), ("-DLEVEL=3",), ("-DLOUD",)],
    ids=lambda o: "".join(o) or "as made",
)
def test_macros_that_were_not_defined(options: tuple[str, ...], tmp_path: Path) -> None:
    """Under others the original loops run: the functions hold none of what these choose."""
    source = tmp_path / "chosen.c"
    source.write_text(
        "#include <stdio.h>\n#ifdef DOUBLE\ntypedef double real;\n#else\ntypedef float real;\n#endif\n"
        "#if defined(FAST) || LEVEL > 2\n#define STEP 2\n#else\n#define STEP 1\n#endif\n"
        "static void f(int n, real *x) {\n  for (int i = 0; i < n; i++) {\n"
        '#ifdef LOUD\n    puts("one");\n#endif\n'
        "    x[i] = x[i] * STEP + i;\n  }\n}\n"
        'int main(void) { real x[70] = {1, 2}; f(70, x); printf("%g %g\\n", x[1], x[69]); return 0; }\n'
    )
    made(source, tmp_path / "out")
    assert printed(built(tmp_path / "out", *options)) == expected(source, tmp_path / "plain", *options)


_OF_THE_COMPILER = """\
#include <stdio.h>
#ifdef _OPENMP
#include <omp.h>
#define STEP 2
#else
#define STEP 3
#endif
#if defined(__AVX2__) && defined(__FMA__)
#define WIDTH 8
#else
#define WIDTH 4
#endif
#if defined(__GNUC__) && __GNUC__ >= 4
typedef double real;
#else
typedef float real;
#endif
#ifdef __has_builtin
#if __has_builtin(__builtin_expect)
#define FROM 5
#endif
#endif
#ifndef FROM
#define FROM 6
#endif
static void f(int n, real *x) {
  for (int i = 0; i < n; i++) x[i] = x[i] * STEP + WIDTH + FROM;
  for (int i = 0; i < n; i++)
#ifdef __FAST_MATH__
    x[i] += 1;
#else
    x[i] -= __INT_MAX__ % 7;
#endif
}
int main(void) {
  real x[70] = {1, 2};
  f(70, x);
  printf("%g %g %d\\n", x[1], x[69], (int)sizeof(real));
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("options", ["-fopenmp", "", "-fopenmp -mavx2 -mfma", "-fopenmp -ffast-math"])
def test_macros_of_the_compiler(options: str, tmp_path: Path) -> None:
    """The functions are made for those that `cc -O2 -fopenmp` has; under others the original loops run."""
    source = tmp_path / "compilers.c"
    source.write_text(_OF_THE_COMPILER)
    made(source, tmp_path / "out")
    wanted = expected(source, tmp_path / "plain", *options.split())
    assert printed(built(tmp_path / "out", *options.split())) == wanted
    file = tmp_path / "out" / FUNCTIONS
    file.write_text(file.read_text().replace("    function(&member", "    if (0) function(&member"))
    differs = printed(built(tmp_path / "out", *options.split())) != wanted
    assert differs is (options == "-fopenmp"), "whether the functions are called"
    assert "_OPENMP" not in (tmp_path / "out" / "build.txt").read_text()


_OF_MANY = """
#include <stdio.h>
float dot(int n, const float *x, const float *y) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x[i] * y[i];
  return s;
}
int main(void) {
  static float x[70000], y[70000];
  for (int i = 0; i < 70000; i++) { x[i] = 1.0f / (i + 1); y[i] = i % 7 - 2.5f; }
  for (int n = 0; n <= 70000; n += n < 16380 ? 2730 : n < 16390 ? 1 : 6701)
    printf("%d %a\\n", n, dot(n, x, y));
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_threads_share_sums_of_many_points_and_rounding_hangs_on_sizes_alone(tmp_path: Path) -> None:
    (tmp_path / "dot.c").write_text(_OF_MANY)
    text = (made(tmp_path / "dot.c", tmp_path / "out", "--function", "dot") / FUNCTIONS).read_text()
    assert "if (n >= 16384) {" in text and "run(dot_loops_of_many, &pace, 1, " in text
    assert "run(dot_loops, &pace, 0, " in text and text.count("team->take_common(") == 1
    program = built(tmp_path / "out", "-fopenmp")
    alone = printed(program, OMP_NUM_THREADS=1)
    assert [printed(program, OMP_NUM_THREADS=n) for n in (2, 3, 5)] == [alone] * 3
    x, y = 1 / np.arange(1, 70001), np.arange(70000) % 7 - 2.5
    for line in alone.splitlines() + printed(built(tmp_path / "out")).splitlines():
        n, found = line.split()
        assert np.isclose(float.fromhex(found), x[: int(n)] @ y[: int(n)], rtol=1e-5)


JUDGED = """\
#include "polyloom_loops.c"
static int after(int calls, int threads, double waited)
{
    struct pace pace = {0};
    for (int k = 0; k < calls; k++)
        judge(&pace, threads, waited, 1.0);
    return gains(&pace);
}
int main(void)
{
    struct pace turns = {0};
    for (int k = 0; k < 9; k++)
        judge(&turns, 2, k % 3 ? 0.9 : 0.1, 1.0);
    printf("%d%d %d%d %d%d", after(9, 2, 0.4), after(9, 2, 0.6), after(9, 4, 0.7), after(9, 4, 0.8),
           after(2, 2, 0.6), after(3, 2, 0.6));
    printf(" %d", gains(&turns));
    struct pace pace = {.missed = 2};
    judge(&pace, 2, 0.009, 0.01);
    const double begin = omp_get_wtime();
    while (!gains(&pace))
        ;
    const double paused = omp_get_wtime() - begin;
    judge(&pace, 2, 0.009, 0.01);
    printf(" %d %d\\n", paused > 0.1 && paused < 2, gains(&pace));
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_threads_that_wait_longer_than_they_work_pause(tmp_path: Path) -> None:
    """Where one alone would be no slower, three times in a row; then each time that it is tried."""
    made(EXAMPLES / "gemm.c", tmp_path)
    (tmp_path / "judged.c").write_text(JUDGED)
    assert printed(built(tmp_path, "-fopenmp", "-Wno-unused-function", files=("judged.c",))) == (
        "10 10 10 1 1 0\n"
    )
