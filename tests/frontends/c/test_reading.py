"""Files as a whole: parts, functions, macros, headers, preprocessors, odd text, arrays."""

from __future__ import annotations

import shutil
from pathlib import Path

import islpy as isl
import numpy as np
import pytest

from polyloom import load
from polyloom.diagnostics import PolyloomError, Source, Unsupported, render
from polyloom.frontends.c import read_c, read_computed
from polyloom.ir.expressions import Constant
from polyloom.ir.text.integers import integer_text
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Name, Number
from polyloom.scop.model import Origin

TWO = """void f(int n, double a[n])
{
#pragma scop
  for (int i = 0; i < n; i++)
    a[i] = 1;
#pragma endscop
  a[0] = 2;
#pragma scop
  for (int i = 0; i < n; i++)
    a[i] += 1;
#pragma endscop
}
void g(int n, double a[n])
{
  for (int t = 0; t < 9; t++) {
#pragma scop
    a[t] = 3;
#pragma endscop
  }
}
"""


def test_several_parts_in_a_file() -> None:
    scops = read_c(Source("two.c", TWO))
    assert [s.name for s in scops] == ["f", "f", "g"]
    assert [p.name for p in scops[2].parameters] == ["n", "t"]
    assert [s.name for s in read_c(Source("two.c", TWO), "g")] == ["g"]


def test_the_extent_is_what_a_drop_in_replaces() -> None:
    (first, second, _) = read_c(Source("two.c", TWO))
    start, end = first.extent
    part = TWO.encode()[start:end].decode()
    assert part.startswith("#pragma scop\n") and part.endswith("\n#pragma endscop")
    assert TWO.encode()[second.extent[0] : second.extent[1]].decode().count("a[i] += 1") == 1


def test_a_whole_function_needs_no_pragma() -> None:
    text = "void f(int n, double a[n])\n{ /* } */ a[0] = '}';\n"
    text += "  for (int i = 0; i < n; i++) { a[i] = 2; }\n}\nint x;\n"
    (scop,) = read_c(Source("f.c", text))
    start, end = scop.extent
    assert text[start - 1] == "{" and text[end] == "}" and text[end:].startswith("}\nint x;")
    assert len(scop.statements) == 2


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(PolyloomError) as caught:
        read_c(Source("two.c", TWO), "h")
    assert "known here: `f`, `g`" in render(caught.value.diagnostics[0])


def test_macros_and_headers(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define COLUMNS (ROWS + 2)\ntypedef float real;\n")
    path = tmp_path / "f.c"
    path.write_text(
        '#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include "sizes.h"\n'
        "void f(real a[ROWS][COLUMNS], uint16_t b[4])\n{\n#pragma scop\n"
        '  a[1][COLUMNS - 1] = b[2];\n#pragma endscop\n  printf("%f\\n", a[0][0]);\n  free(a);\n}\n'
    )
    (scop,) = read_c(Source(str(path), path.read_text()), None, {"ROWS": "3"})
    arrays = {a.name: a for a in scop.arrays}
    assert arrays["a"].type is ElementType.FLOAT32 and arrays["a"].shape == (Number(3), Number(5))
    assert arrays["b"].type is ElementType.UINT16
    assert scop.statements[0].span is not None and scop.statements[0].span.line == 8


def test_headers_in_other_folders(tmp_path: Path) -> None:
    (tmp_path / "size.h").write_text("#define N 4\n")
    text = '#include "size.h"\nvoid f(int a[N]) { a[N - 1] = 0; }\n'
    (scop,) = read_c(Source("f.c", text), None, {}, [tmp_path])
    assert scop.arrays[0].shape == (Number(4),)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_another_preprocessor() -> None:
    text = "#define N 4\n#include <math.h>\nvoid f(double a[N])\n{\n"
    text += "#pragma scop\n  a[1] = sqrt(a[N - 1]);\n#pragma endscop\n}\n"
    (scop,) = read_c(Source("f.c", text), None, {"M": "2"}, (), "gcc -E -nostdinc")
    assert scop.arrays[0].shape == (Number(4),)
    assert scop.statements[0].span is not None and scop.statements[0].span.line == 6


@pytest.mark.parametrize("command", ["no-such-command", "false", "'"])
def test_a_preprocessor_that_fails(command: str) -> None:
    with pytest.raises(PolyloomError) as caught:
        read_c(Source("f.c", "void f(int a[2]) { a[0] = 1; }"), None, {}, (), command)
    assert caught.value.diagnostics[0].code == "c-preprocessor"


def test_places_with_tabs_carriage_returns_and_comments() -> None:
    text = "void f(int n, int a[n])\r\n{\r\n\t/* two\r\n lines */ a[0] = 1;\r\n"
    text += "\ta[1] = \\\r\n 2; a[n*n] = b;\r\n}\r\n"
    with pytest.raises(PolyloomError) as caught:
        read_c(Source("f.c", text))
    span = caught.value.diagnostics[0].span
    assert span is not None and caught.value.diagnostics[0].code == "c-undeclared"


@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
def test_a_comment_whose_line_ends_with_a_backslash_goes_on(end: str) -> None:
    text = f"void f(int n, int a[n])\n{{ a[0] = 1; // C:\\{end} a[0] = 2;\n a[n] = b; }}\n"
    with pytest.raises(PolyloomError) as caught:
        read_c(Source("f.c", text))
    span = caught.value.diagnostics[0].span
    assert span is not None and span.line == 4
    (scop,) = read_c(Source("f.c", text.replace("a[n] = b;", "")))
    assert [s.value for s in scop.statements] == [Constant(1, ElementType.INT32)]


@pytest.mark.parametrize("blank", ["\f", "\v", "/* \u2028 */", "// \x85"])
def test_what_ends_no_line_in_c_ends_none_here(blank: str) -> None:
    """GNU's programs have form feeds between their functions."""
    text = f"int before;\n{blank}\nvoid f(int a[2])\n{{\n  a[0] = 1;\n}}\n"
    (scop,) = read_c(Source("f.c", text))
    start, end = scop.extent
    assert text.encode()[start:end].strip() == b"a[0] = 1;"


def test_arrays_and_where_they_come_from() -> None:
    text = """
const float table[3] = {1, 2, 3};
void f(int n, double *restrict p, const int (*rows)[n], float out[])
{
  double before[n];
#pragma scop
  double inside[4];
  for (int i = 0; i < n; i++) {
    inside[0] = p[i] + rows[i][0];
    before[i] = inside[0];
    out[i] = table[1];
  }
#pragma endscop
}
"""
    (scop,) = read_c(Source("f.c", text))
    arrays = {a.name: a for a in scop.arrays}
    assert arrays["p"].shape == (None,) and arrays["p"].restrict and arrays["p"].origin is Origin.ARGUMENT
    assert arrays["rows"].shape == (None, Name("n")) and arrays["rows"].constant
    assert arrays["table"].origin is Origin.GLOBAL and arrays["table"].constant
    assert arrays["before"].origin is Origin.OUTER and arrays["inside"].origin is Origin.INNER
    assert arrays["out"].shape == (None,) and not arrays["out"].restrict
    assert scop.arguments == ("n", "p", "rows", "out")


def test_what_is_taken_for_granted_is_said() -> None:
    text = "void f(unsigned n, int *a, int *b) { for (unsigned i = 0; i < n - 1; i++) a[i] = b[i + 1]; }"
    (scop,) = read_c(Source("f.c", text))
    assert "`n - 1` is not negative" in scop.assumed
    assert any("do not overlap" in sentence for sentence in scop.assumed)
    assert scop.context.is_subset(isl.Set("[n] -> { : n >= 1 }"))


def test_what_cannot_be_used_does_not_hurt_outside() -> None:
    text = """
#include <stdio.h>
union u { int i; float f; };
static int (*callback)(int);
long double wide;
void f(FILE *file, union u *x, double **rows, int n, double a[n])
{
  double _Complex z = 0;
#pragma scop
  a[0] = 1;
#pragma endscop
}
"""
    assert len(read_c(Source("f.c", text))) == 1
    with pytest.raises(Unsupported) as caught:
        read_c(Source("f.c", text.replace("a[0] = 1", "a[0] = wide")))
    assert caught.value.diagnostics[0].code == "c-type"


LEADING = """void f(int n, int ld, int other, int *a, int *b, int *c)
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      a[i * ld + j] = b[i * ld + j] + c[i * other + j];
}
"""


def test_rows_of_a_written_array_are_taken_not_to_overlap() -> None:
    """Then it is known of arrays that are read: `b` has the same rows."""
    (scop,) = read_c(Source("f.c", LEADING))
    assert {a.name: len(a.shape) for a in scop.arrays} == {"a": 2, "b": 2, "c": 1}
    assert "the rows of `a` do not overlap" in scop.assumed
    assert scop.context.intersect(isl.Set("[n, ld] -> { : n = 5 and ld = 4 }")).is_empty()


def test_rows_of_an_array_that_is_read_are_taken_not_to_overlap_where_callers_ask() -> None:
    """Of few conditions: the original loops do nothing where there are no rows."""
    (part,) = read_computed(Source("f.c", LEADING), unmarked=True)
    assert {a.name: len(a.shape) for a in part.scop.arrays} == {"a": 2, "b": 2, "c": 2}
    asked = isl.Set("[n, ld, other] -> { : ld >= n and other >= n }")
    assert part.scop.context.is_equal(asked) and not part.remarks


def test_subscripts_that_stay_as_they_are_are_remarked() -> None:
    (scop,) = read_c(Source("f.c", LEADING))
    assert [p.name for p in scop.parameters] == ["n", "ld", "other"]
    (remark,) = scop.remarks
    assert remark.code == "c-linearised" and "less than `other`" in remark.notes[0]


STRIDES = {
    "(i * n + k) * 3 + c": "[i, k, c]",
    "2 * i * n + k": "[2i, k]",
    "3 * i * n + 3 * k + 2 - c": "[i, k, 2 - c]",
    "(i * n + k + 1) * 3 + c - 3": "[i, k, c]",
    "i * 6 * n + 2 * k + 1": "[6i, 2k + 1]",
    "4 * i * n + 2 * c * n + k": "[4i + 2c, k]",
}


@pytest.mark.parametrize("subscript", STRIDES)
def test_strides_that_are_multiples_of_numbers(subscript: str) -> None:
    last = "n / 2" if "2 * k" in subscript else "n"
    text = f"""void f(int m, int n, int *a) {{
      for (int i = 0; i < m; i++) for (int k = 0; k < {last}; k++) for (int c = 0; c < 3; c++)
        a[{subscript}] = i; }}"""
    (scop,) = read_c(Source("f.c", text))
    (statement,) = scop.statements
    wanted = isl.Map(f"[m, n] -> {{ {statement.name}[i, k, c] -> a{STRIDES[subscript]} }}")
    assert not scop.remarks and statement.target.relation.is_subset(wanted)


HEADS = """void f(int n, int C, int NH, int hs, int *a, int *b)
{
  for (int i = 0; i < n; i++)
    for (int h = 0; h < NH; h++)
      for (int k = 0; k < hs; k++)
        a[i * C + h * hs + k] = b[i * 3 * C + h * hs + k + C];
}
"""


def test_a_parameter_is_the_product_of_others_where_strides_say_so() -> None:
    (scop,) = read_c(Source("f.c", HEADS))
    shapes = {a.name: [None if n is None else integer_text(n) for n in a.shape] for a in scop.arrays}
    assert shapes == {"a": [None, "NH", "hs"], "b": [None, "NH", "hs"]}
    assert [integer_text(condition) for condition in scop.equal] == ["C == NH * hs"]
    assert "`C == NH * hs`" in scop.assumed and "C" in [p.name for p in scop.parameters]


def test_values_for_which_a_parameter_is_no_such_product_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(HEADS)
    program = load(tmp_path / "f.c")
    b = np.arange(144, dtype=np.int32).reshape(18, 2, 4)
    given = {"n": 3, "NH": 2, "hs": 4, "a": np.zeros((3, 2, 4), np.int32), "b": b}
    assert (program(**given, C=8) == b[1:9:3]).all()
    with pytest.raises(PolyloomError) as caught:
        program(**given, C=10)
    assert [d.code for d in caught.value.diagnostics] == ["parameter-value"]


TOTAL = (
    "static float total(int n, float *a) { float s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }"
)


@pytest.mark.parametrize(
    "use", ["report(total(n, a));", "a[k] = 2; report(total(n, a));", "if (report(total(n, a))) ;"]
)
def test_a_call_with_another_in_its_arguments_is_none_that_can_be_left_out(use: str) -> None:
    """The statements of ``total`` stand for themselves, not for ``report``."""
    text = f"int report(float); {TOTAL} void f(int n, float *a) {{ for (int k = 0; k < n; k++) {{ {use} }} }}"
    with pytest.raises(PolyloomError, match="`report` is a function that Polyloom does not know"):
        read_c(Source("f.c", text), "f")


PLANES = """void f(int n, int h, int w, int *a, int b[n])
{
  int i, k;
  for (k = 0; k < n; k++)
    for (i = 0; i < w * h; i++)
      a[k * h * w + i] += b[k];
}
"""


def test_loops_run_to_a_product_of_sizes() -> None:
    (scop,) = read_c(Source("f.c", PLANES))
    shapes = {a.name: [None if n is None else integer_text(n) for n in a.shape] for a in scop.arrays}
    assert shapes == {"a": [None, "h_w"], "b": ["n"]}
    assert [integer_text(condition) for condition in scop.equal] == ["h_w == h * w"]
    assert [(p.name, p.text) for p in scop.parameters][-1] == ("h_w", "1LL * h * w")


def test_a_product_of_sizes_follows_from_these(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(PLANES)
    a, b = np.arange(42, dtype=np.int32).reshape(3, 14), np.arange(3, dtype=np.int32)
    assert (load(tmp_path / "f.c")(n=3, h=2, w=7, a=a.copy(), b=b) == a + b[:, None]).all()
    assert (load(tmp_path / "f.c")(h=2, w=7, a=a.copy(), b=b) == a + b[:, None]).all()


def test_a_product_of_sizes_is_no_row_of_an_array_with_other_rows() -> None:
    """``h_w <= w`` would make the dimensions right, and hold for one row alone."""
    other = "for (i = 0; i < h; i++) for (k = 0; k < w; k++) a[i * w + k] = 1; }"
    (scop,) = read_c(Source("f.c", PLANES.replace("k * h * w + i", "i").rstrip("}\n") + f"\n{other}"))
    assert [r.code for r in scop.remarks] == ["c-linearised"]
    assert "h_w" not in str(scop.context)


@pytest.mark.parametrize("bound", ["h * w", "w * h", "2 * h * w", "h * 2 * w", "h * w * 2 / 2"])
def test_a_product_has_one_name_however_it_is_written(bound: str) -> None:
    text = f"void f(int h, int w, int *a) {{ for (int i = 0; i < {bound}; i++) a[i] = 0; }}"
    (scop,) = read_c(Source("f.c", text))
    assert [p.name for p in scop.parameters] == ["h", "w", "h_w"]


def test_an_expression_that_is_too_long_is_refused() -> None:
    terms = " + ".join(f"a[{k}]" for k in range(2000))
    with pytest.raises(PolyloomError) as caught:
        read_c(Source("f.c", f"void f(int n, double a[n]) {{ a[0] = {terms}; }}"))
    assert caught.value.diagnostics[0].code == "c-syntax"


def test_a_parameter_may_stand_in_a_computed_subscript_alone() -> None:
    text = "void f(int n, int ld, int *a, int b[n]) { for (int i = 0; i < n; i++) b[i] = a[i * ld]; }"
    (scop,) = read_c(Source("f.c", text))
    assert [p.name for p in scop.parameters] == ["n", "ld"]


NUMBERS = ("1e-4", "1.0e-4", ".5e+1", "1.E-4f", "0x1e", "12e0", "0x1.ep-3", "1e4F")


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_one_token_for_the_preprocessor(number: str) -> None:
    """Macros that are called like an exponent, a suffix or a digit of a hexadecimal number."""
    macros = "".join(f"#define {name} y\n" for name in ("e", "E", "f", "p", "x", "xe", "ep", "F", "x1e"))
    text = f"{macros}void f(double a[4], double y[4]) {{ a[0] = {number}; a[1] = e[1]; }}"
    (scop,) = read_c(Source("f.c", text))
    value = scop.statements[0].value
    digits = number if number.startswith("0x") else number.rstrip("fF")
    wanted = float.fromhex(digits) if number.startswith("0x") else float(digits)
    assert isinstance(value, Constant) and value.value == pytest.approx(wanted, rel=1e-7)


HEADERS = [
    "pthread",
    "complex",
    "getopt",
    "fcntl",
    "malloc",
    "string",
    "strings",
    "memory",
    "signal",
    "locale",
    "fenv",
    "tgmath",
    "immintrin",
    "emmintrin",
    "stdarg",
    "setjmp",
    "alloca",
    "sys/types",
    "sys/stat",
    "sys/mman",
    "sys/wait",
    "sys/time",
    "math",
    "stdio",
    "stdlib",
    "time",
    "unistd",
]
LOOP = """void f(int n, double x[n])
{
#pragma scop
  for (int i = 0; i < n; i++)
    x[i] = 1;
#pragma endscop
}
"""


@pytest.mark.parametrize("header", HEADERS)
def test_headers_without_a_compiler(header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (scop,) = read_c(Source("f.c", f"#include <{header}.h>\n{LOOP}"))
    assert scop.statements[0].span is not None and scop.statements[0].span.line == 6


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("header", ["regex", "dirent", "netdb", "search", "pthread", "stdio", "tgmath"])
def test_headers_of_the_system(header: str) -> None:
    """What our headers lack comes from the system: lines and columns stay those of the file."""
    text = f"#include <ucontext.h>\n#include <{header}.h>\n#define N 7\n{LOOP.replace('< n', '< N')}"
    (scop,) = read_c(Source("f.c", text))
    span = scop.statements[0].span
    assert span is not None and (span.line, span.text) == (8, "x[i] = 1")


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_pragma_of_ours_is_expanded_by_the_systems_preprocessor() -> None:
    loop = LOOP.replace("  for", "#mdh parallel(HOW)\n  for")
    (scop,) = read_c(Source("f.c", f"#include <regex.h>\n#define HOW ++\n{loop}"))
    assert scop.stated[0].operators == ("++",)


def test_what_is_wrong_is_said_of_the_users_text_although_the_system_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(f"#include <no_such_header.h>\n{LOOP}")
    with pytest.raises(PolyloomError) as caught:
        read_c(Source(str(path), path.read_text()))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "c-preprocessor" and "no_such_header" in diagnostic.message
    assert diagnostic.span is not None and diagnostic.span.line == 1


@pytest.mark.parametrize("name", ['a"b.c', "a\nb.c", "a\\b.c", "a\x07.c", "-Dx.c", " .c", "é.c"])
def test_odd_names_of_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "size.h").write_text("#define SIZE n\n")
    text = '#include "size.h"\n' + LOOP.replace("< n", "< SIZE")
    for preprocessor in (None, "gcc -E") if shutil.which("gcc") else (None,):
        source = Source(str(tmp_path / name), text)
        (scop,) = read_c(source, preprocessor=preprocessor)
        span = scop.statements[0].span
        assert span is not None and span.source is source and span.text == "x[i] = 1"


def test_odd_bytes_in_a_header(tmp_path: Path) -> None:
    (tmp_path / "odd.h").write_bytes(b"/* \xd6 */\n#define SIZE n\n")
    (scop,) = read_c(Source(str(tmp_path / "f.c"), f'#include "odd.h"\n{LOOP.replace("< n", "< SIZE")}'))
    assert len(scop.statements) == 1


def test_names_with_dollars_and_members_beside_alike_names() -> None:
    text = """
struct s { double x$[9]; };
static double h$(double a$) { return a$ + 1; }
void f(int n$, double a$b[9], double a_b[9], struct s p, double p_x_[9])
{
  for (int i$ = 0; i$ < n$; i$++) { double t$ = h$(a_b[i$]); a$b[i$] = t$ + p.x$[i$] + p_x_[i$]; }
}
"""
    (scop,) = read_c(Source("f.c", text), "f")
    assert len({a.name for a in scop.arrays if a.shape}) == 4
    assert {p.text for p in scop.parameters} == {"n$"}


@pytest.mark.parametrize("line", ["#pragma", "  # pragma  ", "#pragma // nothing", "#pragma /* nothing */"])
def test_a_pragma_without_words_is_passed_over(line: str) -> None:
    head = f"void f(int n, double a[n]) {{\n{line}\n"
    (scop,) = read_c(Source("f.c", f"{head}#pragma scop\na[0] = 1;\n#pragma endscop\n}}\n"))
    assert len(scop.statements) == 1


@pytest.mark.parametrize("number", ["INFINITY", "-INFINITY", "NAN", "1e39f"])
def test_what_no_integer_holds_is_read_as_one(number: str) -> None:
    """C gives the conversion no meaning; it was a traceback."""
    text = (
        f"#include <math.h>\nvoid f(int n, int a[n]) {{ for (int i = 0; i < n; i++) a[i] = (int){number}; }}"
    )
    (scop,) = read_c(Source("number.c", text))
    assert scop.statements[0].value.type is ElementType.INT32


@pytest.mark.parametrize(
    "loop",
    [
        "int any = 0; for (int i = 0; i < n && !any; i++) { b[i] = 1; any = a[i] == 8; }",
        "int k = 7; for (int i = 0; i < n && i < k; i++) { b[i] = 1; k = a[i]; }",
        "int m = n; for (int i = 0; i < m; i++) { b[i] = 1; m -= 1; }",
        "int s = 1; for (int i = 0; i < n; i += s) { b[i] = a[i]; s = 2; }",
        "int s = 1; for (int i = 0, j = 0; i < n && j < n; i++, j += s) { b[j] = a[i]; s = 2; }",
        "struct { int m; } s = {n}; for (int i = 0; i < s.m; i++) { b[i] = 1; s.m = 7; }",
        "int m = n; for (int i = 0; i < m; i++) { b[i] = 1; cut(&m); }",
    ],
)
def test_what_the_body_changes_is_no_bound(loop: str) -> None:
    """The head is asked again after each iteration: what was known before the loop holds once."""
    text = f"static void cut(int *p) {{ *p = 5; }}\nvoid f(int n, int a[n], int b[n]) {{ {loop} }}"
    with pytest.raises(Unsupported) as caught:
        read_c(Source("f.c", text), "f")
    assert caught.value.diagnostics[0].code in ("c-bound", "c-loop")


def test_a_loop_begins_with_what_was_known_before_it() -> None:
    text = "void f(int n, int b[n + 3]) { int k = 3; for (int i = k; i < n; i++) { b[i] = 1; k = 9; } }"
    (scop,) = read_c(Source("f.c", text))
    (stores,) = (s for s in scop.statements if s.target.array == "b")
    assert stores.domain.is_equal(isl.Set(f"[n] -> {{ {stores.name}[i] : 3 <= i < n }}"))


@pytest.mark.parametrize("character", ["'ab'", "'\u00e9'", "L'a'"])
def test_characters_that_compilers_number_as_they_like(character: str) -> None:
    with pytest.raises(Unsupported) as caught:
        read_c(Source("f.c", f"void f(int a[2]) {{ a[0] = {character}; }}"))
    assert caught.value.diagnostics[0].code == "c-literal"


CONDITIONS = (
    "-1 > 0u",
    "-5 / 2 == -2 && -5 % 3 == -2",
    "'\\377' < 0",
    "(2 || 1/0) && -1 >> 1 == -1 && UNDEFINED == 0 && (3 > 2 > 1) == 0",
    "18446744073709551615u == -1",
    "(2u - 3) > 0 && 0x10 == 020 && (1 << 3 | 1) == 9",
)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_of_the_preprocessor_hold_as_the_compiler_has_them(condition: str) -> None:
    text = f"#if {condition}\n#define K 1\n#else\n#define K 2\n#endif\nvoid f(int a[1]) {{ a[0] = K; }}\n"
    (scop,) = read_c(Source("f.c", text))
    assert scop.statements[0].value == Constant(1, ElementType.INT32)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_macros_that_are_pushed_come_back() -> None:
    text = '#define K 1\n#pragma push_macro("K")\n#undef K\n#define K 2\n#pragma pop_macro("K")\n'
    (scop,) = read_c(Source("f.c", f"{text}void f(int a[1]) {{ a[0] = K; }}\n"))
    assert scop.statements[0].value == Constant(1, ElementType.INT32)


def test_pragmas_may_be_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        'void f(int n, int a[n]) { _Pragma("scop") for (int i = 0; i < n; i++) a[i] = 1; _Pragma("endscop") }'
    )
    assert read_c(Source("f.c", text))[0].marked
    monkeypatch.setenv("PATH", "")
    assert read_c(Source("f.c", text))[0].marked


@pytest.mark.parametrize("command", [None, "gcc -E"])
@pytest.mark.parametrize("line", ["#line 1", '#line 1 "f.c"', '# 1 "f.c" 2', '  #  line 90 "other.c"'])
def test_places_are_those_of_the_text_that_is_given(line: str, command: str | None) -> None:
    """Programs that others were made into say where these stood."""
    text = f"int before;\n{line}\nvoid f(int a[2])\n{{\n  a[0] = 1;\n}}\n"
    (scop,) = read_c(Source("f.c", text), None, {}, (), command)
    start, end = scop.extent
    assert text[start:end].strip() == "a[0] = 1;"


@pytest.mark.parametrize("row", ["w << -1", "w >> -1", "w << 64", "w >> 70"])
def test_shifts_by_other_counts_than_those_of_bits_are_no_lengths_of_rows(row: str) -> None:
    text = f"""void f(int w, int h, const float *s, float *d) {{
  for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) d[y * ({row}) + x] = s[y * w + x];
}}"""
    (scop,) = read_computed(Source("f.c", text))
    assert "c-nonaffine" in [remark.code for remark in scop.remarks]


BIG = "0x7fffffffffffffff"


@pytest.mark.parametrize(
    "row", [f"w & {BIG}", f"w / 3 * {BIG} * 9", f"w * {BIG} * 9", "w / 0x9000000000000000"]
)
def test_numbers_of_more_bits_than_integers_have_are_no_factors(row: str) -> None:
    """isl has them, what is made of its functions has not: none of these is an internal fault."""
    text = f"""void f(long w, int h, const float *s, float *d) {{
  for (long y = 0; y < h; y++) for (long x = 0; x < w; x++) d[y * ({row}) + x] = s[y * w + x];
}}"""
    (scop,) = read_computed(Source("f.c", text))
    assert any(remark.code in ("c-nonaffine", "c-linearised") for remark in scop.remarks)
