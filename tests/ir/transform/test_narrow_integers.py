"""Narrower integers: the same values for all data, in the types that were hoped for."""

from __future__ import annotations

from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Read,
    Select,
    Unary,
    UnaryOp,
    varying_parts,
    walk,
)
from polyloom.ir.host import Buffer, CombineOperator, HostProgram, Index, MdHom, Order, Role, View
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.reductions import KEPT, Combine, combiner
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.transform.narrow_integers import narrow_integers
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import ValueRanges, wrapped
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import Number, leaves_in
from samples import one_in

N = 600
SMALL = [ElementType.INT8, ElementType.UINT8, ElementType.INT16, ElementType.UINT16]
SHIFTS = (BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT)
WIDE = [ElementType.INT32, ElementType.UINT32, ElementType.INT64]


def special(body: str, arguments: str = "") -> HostProgram:
    arrays = f"const unsigned char a[n], const short s[n], unsigned char o[n], short t[n]{arguments}"
    (program,) = host_programs_of(f"void f(int n, {arrays}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}")
    return specialise(program, {"n": N})


def maps(program: HostProgram) -> list[MdHom]:
    return [node for node in leaves_in(program.body) if isinstance(node, MdHom)]


def drawn(rng: np.random.Generator, buffer: Buffer) -> npt.NDArray[np.generic]:
    """Return random elements of a type, its ends and what lies about zero among them."""
    kind, shape = buffer.type, buffer.extents
    if kind.is_float:
        ends = np.array([0, -0.0, 1, 0.5, 300, -3e9, 3e38, np.nan, np.inf, -np.inf], kind.dtype)
        return rng.choice(ends, shape)
    found = rng.integers(kind.lowest, int(kind.highest), shape, kind.dtype, endpoint=True)
    ends = np.array([0, 1, 2, kind.lowest, kind.highest], kind.dtype)
    return np.where(rng.random(shape) < 0.5, rng.choice(ends, shape), found).astype(kind.dtype)


def assert_same(program: HostProgram) -> HostProgram:
    made = narrow_integers(program)
    verify(made)
    rng = np.random.default_rng(7)
    given = {b.name: drawn(rng, b) for b in program.given}
    for name, wanted in evaluate_host(program, {}, given).items():
        np.testing.assert_array_equal(evaluate_host(made, {}, given)[name], wanted, err_msg=name)
    return made


def widest(program: HostProgram) -> int:
    return max(part.type.size for hom in maps(program) for term in hom.terms for part in walk(term))


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ("o[i] = a[i] > 100 ? 255 : 0;", 1),
        ("o[i] = 2 * a[i] > 300 ? 255 : 0;", 2),
        ("o[i] = a[i] + 3 * a[n - 1 - i];", 1),
        ("o[i] = (a[i] + a[n - 1 - i] + 1) / 2;", 2),
        ("o[i] = (a[i] * 77 + a[n - 1 - i] * 179 + 128) >> 8;", 2),
        ("o[i] = (a[i] * 77 + a[n - 1 - i] * 180 + 128) >> 8;", 4),
        ("int d = a[i] - a[n - 1 - i]; o[i] = d < 0 ? -d : d;", 2),
        ("int d = a[i] * 9 - 1000; o[i] = d < 0 ? 0 : d > 255 ? 255 : d;", 2),
        ("t[i] = s[i] + 3 * s[n - 1 - i] - 7;", 2),
        ("t[i] = (s[i] * s[n - 1 - i]) >> 15;", 4),
        ("t[i] = s[i] / s[n - 1 - i];", 4),
        ("t[i] = a[i] % 8 + a[i] / 3;", 2),
    ],
)
def test_the_widest_type(body: str, size: int) -> None:
    program = special(f"for (int i = 0; i < n; i++) {{ {body} }}")
    assert widest(program) >= 4
    assert widest(assert_same(program)) == size


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("f[i] = (i + 1L) * 0.5f;", ElementType.INT32),
        ("f[i] = ((2 * a[i] + s[n - 1 - i] % 16) % 5 % 3 + 1L) * 0.5f;", ElementType.INT16),
    ],
)
def test_floats_are_made_of_the_integers_that_are_quickest(body: str, kind: ElementType) -> None:
    """Those of 16 bits are widened before: what is no array's element gains nothing by them."""
    program = special(f"for (int i = 0; i < n; i++) {{ {body} }}", ", float f[n]")
    (hom,) = maps(assert_same(program))
    (made,) = [p.operand.type for p in walk(hom.terms[0]) if isinstance(p, Convert) and p.type.is_float]
    assert made is kind


@pytest.mark.parametrize(
    ("value", "clamped"),
    [
        ("m > 255 ? 255 : (unsigned char)m", "o"),
        ("m < 0 ? 0 : m > 255 ? 255 : (unsigned char)m", "o"),
        ("m > 300 ? 255 : (unsigned char)m", None),  # bits of 256 to 300 are cut off
        ("m >= 200 ? (unsigned char)200 : (unsigned char)m", "o"),
        ("m < 256 ? (unsigned char)m : 256", None),  # 0 in the end
        ("m <= -7 ? -7 : (short)m", "t"),
    ],
)
def test_clamps_before_a_conversion(value: str, clamped: str | None) -> None:
    result = "t" if "short" in value else "o"
    body = f"int m = s[i] + 2 * a[n - 1 - i] - 300; {result}[i] = {value};"
    made = assert_same(special(f"for (int i = 0; i < n; i++) {{ {body} }}"))
    parts = [part for hom in maps(made) for term in hom.terms for part in walk(term)]
    assert any(isinstance(part, Select) for part in parts) == (clamped is None)


LIMITS = [-(2**31), -511, -510, -1, 0, 1, 254, 255, 256, 509, 510, 511, 2**15, 2**31 - 1]


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("compared", ["a[i] {} limit", "limit {} a[i] + a[n - 1 - i]", "-2 * a[i] {} limit"])
def test_comparisons_with_a_parameter(op: str, compared: str) -> None:
    """It may be any ``int``: how far it lies outside the range of the other operand does not matter."""
    program = special(f"for (int i = 0; i < n; i++) o[i] = {compared.format(op)} ? 255 : 7;", ", int limit")
    made = narrow_integers(program)
    verify(made)
    parts = [part for hom in maps(made) for term in hom.terms for part in varying_parts(term)]
    assert max(part.type.size for part in parts) == 2
    given = {"a": (np.arange(N) % 256).astype(np.uint8)}
    for limit in LIMITS:
        values = [evaluate_host(p, {"limit": limit}, given)["o"] for p in (program, made)]
        np.testing.assert_array_equal(*values, err_msg=str(limit))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("r[0] += a[i] > 9;", ElementType.INT16),
        ("r[0] += a[i];", ElementType.INT32),
        ("if (a[i] > 9) r[0]++;", ElementType.INT16),
        ("r[0] += s[i] * s[i];", ElementType.INT64),
        ("r[0] = a[i] + 2 > r[0] ? a[i] + 2 : r[0];", ElementType.INT16),
    ],
)
def test_totals_have_the_type_that_all_of_them_fit(body: str, kind: ElementType) -> None:
    program = special(f"for (int i = 0; i < n; i++) {{ {body} }}", ", long r[1]")
    (hom,) = maps(assert_same(program))
    assert hom.terms[0].type is kind


def test_a_total_of_more_terms_needs_a_wider_type() -> None:
    body = "for (int i = 0; i < n; i++) for (int j = 0; j < {}; j++) r[0] += a[i] > j;"
    kinds = [maps(narrow_integers(special(body.format(k), ", long r[1]")))[0].terms[0].type for k in (54, 55)]
    assert kinds == [ElementType.INT16, ElementType.UINT16]


@pytest.mark.parametrize(
    ("made", "size"),
    [("sum / 9", 2), ("(sum + 4) >> 3", 2), ("sum > 900 ? 255 : sum / 9", 2), ("sum * sum / 9", 4)],
)
def test_what_is_made_of_a_total_is_narrow_too(made: str, size: int) -> None:
    body = f"""for (int i = 0; i < n - 8; i++) {{
      int sum = 0;
      for (int k = 0; k < 9; k++) sum += a[i + k];
      o[i] = {made};
    }}"""
    (hom,) = maps(assert_same(special(body)))
    (end,) = hom.finish
    assert end is not None and max(part.type.size for part in walk(end)) == size


@pytest.mark.parametrize(("steps", "is_masked"), [(32, True), (33, False)])
@pytest.mark.parametrize("bits", ["w[i] >> b & 1", "(b & 1u) << b"])
def test_counts_that_leave_a_bit_are_masked(bits: str, steps: int, is_masked: bool) -> None:
    body = f"""for (int i = 0; i < n; i++) {{
      unsigned sum = 0;
      for (int b = 0; b < {steps}; b++) sum += {bits};
      q[i] = sum;
    }}"""
    (hom,) = maps(assert_same(special(body, ", const unsigned w[n], unsigned q[n]")))
    shifts = [e for e in walk(hom.terms[0]) if isinstance(e, Binary) and e.op in SHIFTS]
    masks = [isinstance(e.right, Binary) and e.right.op is BinaryOp.BIT_AND for e in shifts]
    assert masks == [is_masked]


def test_what_wraps_in_its_own_type_is_not_computed_in_a_wider_one() -> None:
    absolute = Unary(UnaryOp.ABS, Convert(ElementType.INT8, Read(0, ElementType.INT16)))
    assert_same(
        program_of([ElementType.INT16], Convert(ElementType.UINT16, Convert(ElementType.INT64, absolute)))
    )


@pytest.mark.parametrize("kind", ["float", "double"])
def test_what_is_made_of_a_sum_of_floats_stays(kind: str) -> None:
    """The sum of integers beside it becomes narrow."""
    body = "for (int k = 0; k < 9; k++) { q += x[k]; r[0] += a[k]; } t[0] = q;"
    assert_same(special(f"float q = 0; {body}", f", const {kind} x[n], long r[1]"))


@pytest.mark.parametrize("seed", one_in(10, range(400)))
def test_random_functions(seed: int) -> None:
    assert_same(random_program(Random(seed)))


@pytest.mark.parametrize("seed", one_in(10, range(400)))
def test_ranges_hold(seed: int) -> None:
    """A function is stored whole, and is never outside its range."""
    rng = Random(1000 + seed)
    term = random_integer(rng, rng.choice(WIDE), 4, kinds := [rng.choice(SMALL) for _ in range(3)])
    low, high = ValueRanges((Number(N),)).of(term)
    program = program_of(kinds, term)
    generator = np.random.default_rng(seed)
    found = evaluate_host(program, {}, {b.name: drawn(generator, b) for b in program.given})["out"]
    assert low <= int(found.min()) and int(found.max()) <= high


@pytest.mark.parametrize("seed", one_in(10, range(400)))
def test_ranges_of_floats_hold(seed: int) -> None:
    rng, generator = Random(2000 + seed), np.random.default_rng(seed)
    kinds = [rng.choice([*SMALL, ElementType.FLOAT32]) for _ in range(3)]
    term = random_float(rng, rng.choice([ElementType.FLOAT32, ElementType.FLOAT64]), 4, kinds)
    known = ValueRanges((Number(N),)).of_float(term)
    program = program_of(kinds, term)
    with np.errstate(all="ignore"):
        given = {b.name: drawn(generator, b) for b in program.given}
        found = evaluate_host(program, {}, given)["out"].astype(np.float64)
    if known is not None:
        numbers = found[~np.isnan(found)]
        assert ((known.low <= numbers) & (numbers <= known.high)).all()
        assert known.may_be_no_number or len(numbers) == len(found)


BETWEEN = "(x[i] < 10 ? 10 : x[i] > 20 ? 20 : x[i])"
"""Where it is a number."""


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        ("o[i] = a[i] * 0.5f + 3;", (3, 131)),
        ("o[i] = x[i] < 0 ? 0 : x[i] > 255 ? 255 : x[i];", (0, 255)),
        ("o[i] = fmaxf(fminf(x[i], 200), 4);", (4, 200)),
        (f"o[i] = fmaxf({BETWEEN}, a[i] * 0.01f);", (0, 20)),
        (f"o[i] = fminf(a[i] + 90.0f, {BETWEEN});", (10, 345)),
        (f"o[i] = a[i] * 1.0f < {BETWEEN} ? 150 : a[i] * 1.0f;", (0, 255)),
        ("o[i] = x[i] + 1;", None),
        ("o[i] = x[i] < 0 ? 0 : x[i];", None),
    ],
)
def test_bounds_of_floats(body: str, ends: tuple[int, int] | None) -> None:
    (hom,) = maps(special(f"for (int i = 0; i < n; i++) {{ {body} }}", ", const float x[n]"))
    parts = [
        part.operand
        for part in walk(hom.terms[0])
        if isinstance(part, Convert) and part.operand.type.is_float
    ]
    found = ValueRanges(hom.extents).of_float(parts[0])
    assert (found is None) == (ends is None)
    if found is not None and ends is not None:
        assert (found.low, found.high) == pytest.approx(ends, abs=2)


def random_program(rng: Random) -> HostProgram:
    kinds = [rng.choice(SMALL) for _ in range(3)]
    wide = rng.choice(WIDE)
    term = random_integer(rng, wide, 4, kinds)
    if rng.random() < 0.3:
        operator = rng.choice([Combine.ADD, Combine.MAXIMUM, Combine.MINIMUM])
        end = rebuilt(random_integer(rng, wide, 3, [wide]), _of_a_total) if rng.random() < 0.7 else None
        end = end and Convert(rng.choice([*SMALL, wide]), end)
        return program_of(kinds, term, CombineOperator(Order.POINTWISE, combiner(operator, wide)), end)
    return program_of(kinds, Convert(rng.choice([*SMALL, *SMALL, wide]), term))


def _of_a_total(part: Expression) -> Expression | None:
    match part:
        case Read(position=0, type=kind):
            return Read(3, kind)
        case Iterator(type=kind):
            return Constant(1, kind)
        case _:
            return None


def program_of(
    kinds: list[ElementType],
    term: Expression,
    operator: CombineOperator = KEPT,
    end: Expression | None = None,
) -> HostProgram:
    """Return a program that stores a function of three arrays and the iterator, or combines its values.

    ``end``: what is made of a total, which is `Read` 3.
    """
    buffers = [Buffer.of(f"a{k}", kind, (N,), role=Role.INPUT) for k, kind in enumerate(kinds)]
    is_map = operator is KEPT
    there = (Index.unit(0, 1),) if is_map else (Index.of((0,)),)
    hom = MdHom(
        name="S",
        iterators=("i",),
        extents=(Number(N),),
        inputs=tuple(View(b.name, (Index.unit(0, 1),)) for b in buffers),
        outputs=(View("out", there),),
        terms=(term,),
        combine=(operator,),
        initial=(None if is_map else Constant(5, term.type),),
        finish=(end,),
    )
    out = Buffer.of("out", (term if end is None else end).type, (N if is_map else 1,), role=Role.OUTPUT)
    return HostProgram(name="f", parameters=(), buffers=(*buffers, out), body=(hom,))


BINARY = [
    *(BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.DIVIDE, BinaryOp.REMAINDER),
    *(BinaryOp.MAXIMUM, BinaryOp.MINIMUM, BinaryOp.BIT_AND, BinaryOp.BIT_OR, BinaryOp.BIT_XOR),
]
SHIFTS: list[BinaryFunction] = [BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT]
NUMBERS = [0, 1, 2, 3, 7, 8, 9, 127, 128, 255, 256, -1, -2, -128, 1000, 32767, 65535, 65536]


def random_float(rng: Random, kind: ElementType, depth: int, reads: list[ElementType]) -> Expression:
    """Return a random function of floats with choices, of what may be NaN too."""

    def inner() -> Expression:
        return random_float(rng, kind, depth - 1, reads)

    if depth == 0 or rng.random() < 0.1:
        k = rng.randrange(len(reads))
        return (
            Constant(rng.choice([0, 1, -1, 255, 0.3, 1e4]), kind)
            if rng.random() < 0.3
            else Convert(kind, Read(k, reads[k]))
        )
    a, b = inner(), inner()
    match rng.choice(["binary", "extreme", "select", "clamp", "unary"]):
        case "binary":
            return Binary(rng.choice([BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY]), a, b)
        case "extreme":
            extremes = [BinaryOp.MAXIMUM, BinaryOp.MINIMUM, BinaryOp.FMAX, BinaryOp.FMIN]
            return Binary(rng.choice(extremes), a, b)
        case "select":
            c = inner()
            then, otherwise = rng.sample([a, b, c], 2)
            return Select(Compare(rng.choice([*CompareOp]), a, b), then, otherwise)
        case "clamp":
            high = Select(Compare(CompareOp.GT, a, b), b, a)
            return Select(Compare(CompareOp.LT, a, Constant(0, kind)), Constant(0, kind), high)
        case _:
            return Unary(rng.choice([UnaryOp.NEGATE, UnaryOp.ABS, UnaryOp.FLOOR]), a)


def random_integer(rng: Random, kind: ElementType, depth: int, reads: list[ElementType]) -> Expression:
    """Return a random function of integers, as C would convert its operands."""

    def inner() -> Expression:
        return random_integer(rng, kind, depth - 1, reads)

    if depth == 0 or rng.random() < 0.1:
        k = rng.randrange(len(reads))
        leaf = rng.random()
        if leaf < 0.3:
            return Constant(wrapped(rng.choice(NUMBERS), kind), kind)
        return Iterator(0, kind) if leaf < 0.35 else Convert(kind, Read(k, reads[k]))
    match rng.choice(["binary", "binary", "binary", "shift", "unary", "select", "extreme", "convert"]):
        case "binary":
            return Binary(rng.choice(BINARY), inner(), inner())
        case "shift":
            count = inner() if rng.random() < 0.2 else Constant(rng.randrange(8 * kind.size), kind)
            return Binary(rng.choice(SHIFTS), inner(), count)
        case "unary":
            return Unary(rng.choice([UnaryOp.NEGATE, UnaryOp.ABS, UnaryOp.COMPLEMENT]), inner())
        case "select":
            return Select(Compare(rng.choice([*CompareOp]), inner(), inner()), inner(), inner())
        case "extreme":
            a, b = inner(), inner()
            then, otherwise = rng.sample([a, b, Unary(UnaryOp.NEGATE, a)], 2)
            return Select(Compare(rng.choice([*CompareOp]), a, b), then, otherwise)
        case _:
            between = rng.choice([*SMALL, *WIDE])
            return Convert(kind, random_integer(rng, between, depth - 1, reads))
