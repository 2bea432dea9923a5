"""How OpenCL C and C differ where scalars and vectors of numbers are written: as data.

Vectors of C are those of gcc and clang (``vector_size``): operators work on them element by element, a
comparison gives a mask of integers of the same size, 0 or -1, as in OpenCL. What C lacks (``?:`` of vectors,
``exp`` of a vector) are small functions that ``helpers`` defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from polyloom.ir.types import ElementType
from polyloom.mdh.device.costs import NEAR
from polyloom.mdh.print.library.quick_functions import FUNCTIONS, PREFIX
from polyloom.mdh.print.needs import Needs

NARROW = frozenset({ElementType.INT8, ElementType.UINT8, ElementType.INT16, ElementType.UINT16})
"""C computes with them as ``int``."""

SIGNED = {
    1: ElementType.INT8,
    2: ElementType.INT16,
    4: ElementType.INT32,
    8: ElementType.INT64,
}
"""By bytes: the elements of masks, and those of bits."""

WIDENED = "from_"
"""What the names of helpers begin with that widen integers, of the type that follows."""

COMPARED = "mask_"
"""What the names of helpers begin with that compare numbers, by the operator and type that follow, and give a
mask of smaller elements."""

_SMALL_VECTOR = 8
"""Bytes of a vector that gcc makes out of a larger one at once."""


@dataclass(frozen=True, eq=False)
class Dialect:
    """A language that values and statements are written in.

    ``scalars``: types of values in variables: ``float`` for a half, ``int`` for a truth value. ``vectors``:
    the type of ``{n}`` of them. ``suffixes``: of integer literals. ``half``: a half in memory.
    ``splat``: a vector whose elements are all ``{value}``, empty where a helper makes it; ``convert``,
    ``reinterpret``: of a vector to another type. ``masks_are_truths``: whether ``&&``, ``!``, ``?:`` take
    masks. ``own_functions``: whether ``exp`` and its like take every type, and ``max`` and ``abs`` integers.

    ``index``: the type of integers of loops. ``load_half``, ``store_half``: a half at ``{place}``, as a
    float; ``has_half_arrays``: whether one may declare them. ``aligned``: ``{array}`` at a multiple of
    ``{align}`` bytes. ``lane``: one element of a vector, its number in decimal and hexadecimal;
    ``has_loops_over_lanes``: whether it may be a variable. ``lanes``: 0, 1, 2, ... as a vector, empty
    where a helper makes it. ``moves``, ``half_moves``: how a vector of ``{n}`` neighbours is loaded and
    stored, past the caches in a ``stream``, or elements at a distance are gathered and scattered, by a
    ``{helper}`` or without, and half of a vector is taken; what is not there is done lane by lane.
    ``widest``: elements of a vector.
    ``clears_registers``: whether variables begin with 0: PoCL 3.0 takes what only some paths store for
    undefined behind a barrier. ``barrier``: items of a group wait, and see memory of the group, or all.

    ``quick``: whether ``exp`` and its like of vectors are polynomials (``quick_functions``).
    ``has_wide_moves``: whether loops over lanes move neighbours at once (``wide_moves``).
    ``has_matrix_units``: whether matrix units of warps do blocks of products (``matrix_unit``).
    ``turns_blocks``: whether blocks of elements are turned in registers (``turned_blocks``).
    ``has_prefetches``: whether elements may be asked for before they are stored (``prefetches``).
    ``keeps_vectors``: whether vectors that several sums use are kept in registers (``kept_vectors``).
    ``finds_asked_iterations``: whether iterations that data asks for are found first (``asked_iterations``).
    ``independent``: what stands before a loop whose points are independent; ``reducing``: before one whose
    points are combined into a ``{total}`` by a ``{sign}``.
    ``written_out``: what stands before a loop over lanes that the compiler is to write out.
    ``function_head``: what helpers begin with. ``owner``: what names of those for integers of loops
    begin with, where they stand among names of others.
    ``needs``: where what is asked of it is noted, if anywhere.
    """

    scalars: Mapping[ElementType, str]
    vectors: Mapping[ElementType, str]
    suffixes: Mapping[ElementType, str]
    half: str
    splat: str
    convert: str
    reinterpret: str
    masks_are_truths: bool
    own_functions: bool
    index: str
    load_half: str
    store_half: str
    aligned: str
    lane: str
    has_loops_over_lanes: bool
    lanes: str
    moves: Mapping[str, str]
    half_moves: Mapping[str, str]
    has_half_arrays: bool
    clears_registers: bool
    widest: int
    barrier: str
    barrier_everywhere: str
    function_head: str = "static inline"
    owner: str = ""
    has_wide_moves: bool = False
    has_matrix_units: bool = False
    turns_blocks: bool = False
    has_prefetches: bool = False
    keeps_vectors: bool = False
    finds_asked_iterations: bool = False
    independent: str = ""
    reducing: str = ""
    written_out: str = ""
    quick: bool = False
    needs: Needs | None = None

    def noting(self) -> Dialect:
        """Return the language with room of its own for what is asked of it."""
        return replace(self, needs=Needs())

    @property
    def noted(self) -> Needs:
        """What was asked of it. Errors: ValueError where nothing is noted."""
        if self.needs is None:
            raise ValueError("nobody notes what this language is asked for")
        return self.needs

    def type(self, element: ElementType, width: int = 1) -> str:
        """Return the type of ``width`` values in a variable."""
        if width == 1:
            return self.scalars[element]
        of = self.scalars[held(element)]
        return self._vector(self.vectors[element].format(n=width), of, value_bytes(element) * width)

    def halves(self, width: int) -> str:
        """Return the type of a vector of halves as they are in memory."""
        return self._vector(f"float16x{width}", self.half, 2 * width)

    def _vector(self, name: str, element: str, size: int) -> str:
        if self.needs is not None:
            self.needs.vectors[name] = element, size
        return name

    def converted(self, value: str, source: ElementType, element: ElementType, width: int) -> str:
        """Return a vector of ``width`` numbers as another type.

        C resizes integers by factors of two, or by a helper: gcc 12 takes elements one by one where the
        factor is larger, and two halves of a vector where an instruction would do.
        """
        steps = [element] if self.own_functions or source.is_float else self._steps(source, element, width)
        for before, step in pairwise([source, *steps]):
            if before in _INTEGERS and before.size < step.size and not self.own_functions:
                value = f"{self.helper(f'{WIDENED}{before.value}', step, width)}({value})"
            else:
                value = self.convert.format(kind=self.type(step, width), value=value)
        return value

    def _steps(self, source: ElementType, element: ElementType, width: int) -> list[ElementType]:
        """Return the types that integers become in turn: of four bytes before they are floats."""
        first, last = value_bytes(source), value_bytes(element)
        if element.is_float:
            return [ElementType.INT32, element] if first < 4 else [element]
        sizes = [size for size in SIGNED if last < size < first and width * last >= _SMALL_VECTOR]
        return [*(SIGNED[size] for size in reversed(sizes)), element]

    def all_of(self, value: str, element: ElementType, width: int) -> str:
        """Return ``width`` times the same value."""
        if width == 1:
            return value
        if not self.splat:
            return f"{self.helper('splat', element, width)}({value})"
        return self.splat.format(kind=self.type(element, width), value=value)

    def function(self, name: str, element: ElementType, width: int) -> str:
        """Return what a function of the standard library is called for a type, or a helper in its place."""
        if self.own_functions:
            return name
        if element.is_float and width == 1 and name not in _NOT_IN_C:
            return self.of_header("math.h", name if element is ElementType.FLOAT64 else f"{name}f")
        return self.helper(name, element, width)

    def helper(self, family: str, element: ElementType, width: int = 1) -> str:
        """Return what a function of ``helpers`` is called for a type.

        Those that move halves (``load_half8``) are told by FLOAT16, roundings to a half by what they round.
        """
        if self.quick and width > 1 and family in FUNCTIONS.get(element, ()):
            family = PREFIX + family
        if family not in MOVING or element is not ElementType.FLOAT16:
            element = held(element)
        if self.needs is not None:
            self.needs.helpers[family, element, width] = None
        if family in OF_INTEGERS:
            return f"{self.owner}{family}"
        if family == ROUND_HALF:
            return f"{family}{'_double' if element is ElementType.FLOAT64 else ''}{_suffix(width)}"
        kind = f"half{width}" if element is ElementType.FLOAT16 else self.type(element, width)
        return f"{family}_{kind}"

    def numbers(self, element: ElementType, width: int) -> str:
        """Return 0, 1, 2, ... as a vector."""
        if not self.lanes:
            return f"{self.helper('lanes', element, width)}()"
        return self.lanes.format(kind=self.type(element, width), numbers=", ".join(map(str, range(width))))

    def moves_of(self, is_half: bool) -> Mapping[str, str]:
        """Return how vectors of elements, or of halves, are loaded and stored, by families of helpers."""
        return self.half_moves if is_half else self.moves

    def move(self, family: str, element: ElementType, width: int, **texts: str) -> str:
        """Return a load or store of a vector at an ``address``; ``step``: between elements."""
        form = self.moves_of(element is ElementType.FLOAT16)[family]
        helper = self.helper(family, element, width) if "{helper}" in form else ""
        return form.format(helper=helper, n=width, **texts)

    def of_header(self, header: str, name: str) -> str:
        """Return a name that a header of the library has."""
        if self.needs is not None:
            self.needs.headers.add(header)
        return name


OF_INTEGERS = ("floor_div", "lesser", "greater")
"""Helpers for integers of loops: they have one type."""

INTERLEAVED = {n: f"store{n}" for n in NEAR}
"""Helpers that store so many vectors, whose elements take turns in memory."""

LOADED_IN_TURN = {n: f"load{n}" for n in NEAR}
"""Helpers that load so many of them."""

ENDS = ("low", "high")
"""Helpers that return the first and the second half of a vector; what they are noted by is the half."""

MOVING = ("load", "store", "stream", "gather", "scatter", *INTERLEAVED.values(), *LOADED_IN_TURN.values())
"""Helpers that load and store vectors."""

ROUND_HALF = "round_half"

ANY_LANE = "any"
"""The helper of C that says whether any element of a mask is set."""
SHORTS_MULTIPLIED = "mul_shorts"
"""The helper of C that multiplies vectors of integers of 32 bits that 16 have, the second without a sign."""

TURNED = "turned"
"""The helper of C that loads blocks of elements and turns them in registers."""


def held(element: ElementType) -> ElementType:
    """Return the type that stands for values of a type in variables."""
    return {ElementType.FLOAT16: ElementType.FLOAT32, ElementType.BOOL: ElementType.INT32}.get(
        element, element
    )


_NOT_IN_C = frozenset({"rsqrt"})


def _suffix(width: int) -> str:
    return "" if width == 1 else str(width)


def value_bytes(element: ElementType) -> int:
    """Return the bytes of a value in a variable."""
    return 4 if element in (ElementType.FLOAT16, ElementType.BOOL) else element.size


_OPENCL_SCALARS = {
    ElementType.FLOAT16: "float",
    ElementType.FLOAT32: "float",
    ElementType.FLOAT64: "double",
    ElementType.INT8: "char",
    ElementType.INT16: "short",
    ElementType.INT32: "int",
    ElementType.INT64: "long",
    ElementType.UINT8: "uchar",
    ElementType.UINT16: "ushort",
    ElementType.UINT32: "uint",
    ElementType.UINT64: "ulong",
    ElementType.BOOL: "int",
}

OPENCL = Dialect(
    scalars=_OPENCL_SCALARS,
    vectors={element: f"{name}{{n}}" for element, name in _OPENCL_SCALARS.items()},
    suffixes={ElementType.UINT32: "u", ElementType.INT64: "L", ElementType.UINT64: "UL"},
    half="half",
    splat="({kind})({value})",
    convert="convert_{kind}({value})",
    reinterpret="as_{kind}({value})",
    masks_are_truths=True,
    own_functions=True,
    index="long",
    load_half="vload_half(0, &{place})",
    store_half="vstore_half_rte({value}, 0, &{place});",
    aligned="{array} __attribute__((aligned({align})))",
    lane="{vector}.s{digit}",
    has_loops_over_lanes=False,
    lanes="({kind})({numbers})",
    moves={
        "load": "vload{n}(0, {address})",
        "store": "vstore{n}({value}, 0, {address});",
        "stream": "{helper}({value}, {address});",
        "low": "{vector}.lo",
        "high": "{vector}.hi",
    },
    half_moves={"load": "{helper}({address})", "store": "{helper}({value}, {address});"},
    has_half_arrays=False,
    clears_registers=True,
    widest=16,
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    barrier_everywhere="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
)

_INTEGERS = tuple(e for e in ElementType if not e.is_float and e is not ElementType.BOOL)
_C_MOVES = {
    "load": "{helper}({address})",
    "store": "{helper}({address}, {value});",
    "stream": "{helper}({address}, {value});",
    "gather": "{helper}({address}, {step})",
    "scatter": "{helper}({address}, {step}, {value});",
    **{
        family: f"{{helper}}({{address}}, {', '.join(f'{{v{k}}}' for k in range(n))});"
        for n, family in INTERLEAVED.items()
    },
    **dict.fromkeys(LOADED_IN_TURN.values(), "{helper}({address}, {name});"),
    **dict.fromkeys(ENDS, "{helper}({vector})"),
}

C = Dialect(
    scalars={
        ElementType.FLOAT16: "float",
        ElementType.FLOAT32: "float",
        ElementType.FLOAT64: "double",
        ElementType.BOOL: "int",
        **{element: f"{element.value}_t" for element in _INTEGERS},
    },
    vectors={
        ElementType.FLOAT16: "float32x{n}",
        ElementType.FLOAT32: "float32x{n}",
        ElementType.FLOAT64: "float64x{n}",
        ElementType.BOOL: "int32x{n}",
        **{element: f"{element.value}x{{n}}" for element in _INTEGERS},
    },
    suffixes={ElementType.UINT32: "u", ElementType.INT64: "LL", ElementType.UINT64: "ULL"},
    half="_Float16",
    splat="",
    convert="__builtin_convertvector({value}, {kind})",
    reinterpret="(({kind})({value}))",
    masks_are_truths=False,
    own_functions=False,
    index="int64_t",
    load_half="((float){place})",
    store_half="{place} = (_Float16)({value});",
    aligned="_Alignas({align}) {array}",
    lane="{vector}[{lane}]",
    has_loops_over_lanes=True,
    lanes="",
    moves=_C_MOVES,
    half_moves=_C_MOVES,
    has_half_arrays=True,
    clears_registers=False,
    widest=64,
    barrier="",
    barrier_everywhere="",
    turns_blocks=True,
    has_prefetches=True,
    keeps_vectors=True,
    finds_asked_iterations=True,
    independent="#pragma GCC ivdep",
    reducing="IN_ANY_ORDER({sign}, {total})",
)

CUDA = replace(
    C,
    half="__half",
    load_half="((float){place})",
    store_half="{place} = (__half){value};",
    aligned="__align__({align}) {array}",
    moves={},
    half_moves={},
    has_half_arrays=False,
    clears_registers=True,
    widest=1,
    barrier="__syncthreads();",
    barrier_everywhere="__syncthreads();",
    function_head="static __device__ inline",
    has_wide_moves=True,
    has_matrix_units=True,
    turns_blocks=False,
    has_prefetches=False,
    keeps_vectors=False,
    finds_asked_iterations=False,
    independent="",
    written_out="#pragma unroll",
)
"""CUDA C, whose vectors are loops over lanes: short ones, which its compilers write out in registers."""

QUICK_C = replace(C, quick=True)
"""C where functions of vectors may differ from the library's in the last places."""
