"""A kernel tree as OpenCL C or CUDA C: what one work-item does, which knows its number and its group's.

    __kernel __attribute__((reqd_work_group_size(1, 1, 1)))
    void scale(__global float *restrict y, __global const float *restrict x)
    {
        const int group = get_group_id(0);
        for (int i = group * 64; i < group * 64 + 64; i += 8) {
            vstore8((float8)(2.0f) * vload8(0, &x[i]), 0, &y[i]);
        }
    }

Arrays that the kernel is given have one subscript, row by row: OpenCL C has no pointers to arrays whose
extents are variables. Statements, vectors and values are printed as C's are, in another dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import CUDA as CUDA_PLATFORM
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.print.c_scope import Scope, Variable
from polyloom.mdh.print.c_statements import array_variable, block_lines, indented
from polyloom.mdh.print.dialect import CUDA, OPENCL, Dialect
from polyloom.mdh.print.helpers import helper_functions
from polyloom.mdh.print.library.matrix_units import MATRIX_UNITS
from polyloom.mdh.print.names import CPP_WORDS, CUDA_WORDS, c_names
from polyloom.mdh.print.vectors.wide_moves import LANES
from polyloom.mdh.tree.nodes import Array, Function, Parameter
from polyloom.mdh.tree.rewrite import declared_in, values_of, walk


@dataclass(frozen=True, eq=False)
class KernelLanguage:
    """What kernels have beside statements.

    ``head``: of a kernel with so many ``{items}``; ``pointer``: a parameter; ``group``, ``item``: where the
    numbers are; ``of_group``: an array that the items of a group share; ``doubles``: what asks for them;
    ``prelude``, ``halves``, ``lanes``, ``units``: what kernels begin with, those with halves, those with wide
    moves, those with matrix units.
    ``uncontracted``: what a kernel begins with, or an option, where no product and sum are one operation.
    ``words``: that mean something in it, beside those of OpenCL C.
    """

    dialect: Dialect
    head: str
    pointer: str
    restrict: str
    group: str
    item: str
    of_group: str
    doubles: str = ""
    prelude: str = ""
    halves: str = ""
    lanes: str = ""
    units: str = ""
    uncontracted: str = ""
    uncontracted_options: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()


UNCONTRACTED = "#pragma OPENCL FP_CONTRACT OFF\n"

OPENCL_KERNELS = KernelLanguage(
    dialect=OPENCL,
    head="__kernel __attribute__((reqd_work_group_size({items}, 1, 1)))\nvoid {name}(",
    pointer="__global {const}{element} *{restrict}{name}",
    restrict="restrict ",
    group="get_group_id(0)",
    item="get_local_id(0)",
    of_group="__local {array}",
    doubles="#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n\n",
    uncontracted=UNCONTRACTED,
)

CUDA_KERNELS = KernelLanguage(
    dialect=CUDA,
    head='extern "C" __global__ void __launch_bounds__({items})\n{name}(',
    pointer="{const}{element} *{restrict}{name}",
    restrict="__restrict__ ",
    group="blockIdx.x",
    item="threadIdx.x",
    of_group="__shared__ {array}",
    prelude="""\
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <math.h>
#include <stdint.h>
#endif

""",
    halves="""\
#ifdef __CUDACC_RTC__
struct __half {
    unsigned short bits;
    __half() = default;
    explicit __device__ __half(float a) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(a)); }
    explicit __device__ __half(double a) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(a)); }
    explicit __device__ operator float() const
    {
        float a;
        asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"(bits));
        return a;
    }
};
#else
#include <cuda_fp16.h>
#endif

""",
    lanes=LANES,
    units=MATRIX_UNITS,
    uncontracted_options=("-fmad=false",),
    words=CPP_WORDS | CUDA_WORDS,
)


def kernel_language(device: DeviceModel) -> KernelLanguage:
    """Return the language of a device's kernels."""
    return CUDA_KERNELS if device.platform == CUDA_PLATFORM else OPENCL_KERNELS


def prelude_of(sources: Iterable[str]) -> str:
    """Return what several kernels in CUDA C begin with."""
    given = list(sources)
    parts = (CUDA_KERNELS.halves, CUDA_KERNELS.lanes, CUDA_KERNELS.units)
    return CUDA_KERNELS.prelude + "".join(part for part in parts if any(part in text for text in given))


def without_prelude(source: str) -> str:
    """Return a kernel in CUDA C without what all of them begin with."""
    kinds = CUDA_KERNELS
    for part in (kinds.prelude, kinds.halves, kinds.lanes, kinds.units):
        source = source.removeprefix(part)
    return source


def kernel_body(source: str) -> str:
    """Return a kernel in CUDA C for a namespace of C++: what it begins with stands before that."""
    return without_prelude(source).replace(_EXTERN, "__global__ ", 1)


_EXTERN = 'extern "C" __global__ '


@dataclass(frozen=True, kw_only=True)
class KernelTree:
    """What a work-item does: ``function``, of which the last two integers are the numbers of group and item.

    ``arrays``: those that the items of a group share. ``narrow``: whether all integers fit into 32 bits.
    """

    function: Function
    arrays: tuple[Array, ...]
    items: int
    narrow: bool


def kernel_name(name: str, language: KernelLanguage) -> str:
    """Return what a kernel is called in its source."""
    return c_names([name], language.words)[name]


def kernel_source(kernel: KernelTree, language: KernelLanguage = OPENCL_KERNELS) -> str:
    """Return a kernel with what it calls; its arguments are the arrays in order, then the integers."""
    function = kernel.function
    wide = language.dialect.index
    dialect = replace(language.dialect, index="int") if kernel.narrow else language.dialect
    name = kernel_name(function.name, language)
    own_names = (*(p.name for p in function.parameters), *function.integers, *(a.name for a in kernel.arrays))
    names = c_names((*own_names, *declared_in(function.body)), (name, "lanes", *language.words))
    scope = Scope(names, dialect=dialect.noting())
    for parameter in function.parameters:
        scope = scope.with_variable(parameter.name, _given(parameter, names, kernel))
    own = []
    for array in kernel.arrays:
        variable = array_variable(array, scope)
        own.append(language.of_group.format(array=_shared(array, variable, scope)))
        scope = scope.with_variable(array.name, variable)
    *integers, group, item = function.integers
    body = [*own, *block_lines(function.body, scope)]
    numbers = [
        f"const {scope.dialect.index} {names[n]} = {text};"
        for n, text in ((group, language.group), (item, language.item))
        if n in scope.needs.names
    ]
    numbers += [f"(void){names[n]};" for n in integers if n not in scope.needs.names]
    head = language.head.format(items=kernel.items, name=name)
    between = ",\n" + " " * len(head.splitlines()[-1])
    arguments = between.join(
        [
            *(_pointer(p, scope, language) for p in function.parameters),
            *(f"const {wide} {names[n]}" for n in integers),
        ]
    )
    lines = "".join(f"{line}\n" for line in indented([*numbers, *body]))
    types = set(_types(kernel))
    before = language.doubles if ElementType.FLOAT64 in types else ""
    before += language.prelude + (language.halves if ElementType.FLOAT16 in types else "")
    before += language.lanes if LANES in scope.needs.definitions else ""
    before += language.units if MATRIX_UNITS in scope.needs.definitions else ""
    return f"{before}{helper_functions(scope.needs, scope.dialect)}{head}{arguments})\n{{\n{lines}}}\n"


def _given(parameter: Parameter, names: Mapping[str, str], kernel: KernelTree) -> Variable:
    streams = parameter.name in kernel.function.streamed
    return Variable(names[parameter.name], parameter.type, parameter.shape, flat=True, streams=streams)


def _pointer(parameter: Parameter, scope: Scope, language: KernelLanguage) -> str:
    variable = scope.variables[parameter.name]
    return language.pointer.format(
        const="const " if parameter.constant else "",
        element=variable.element(scope.dialect),
        restrict=language.restrict if parameter.alone else "",
        name=variable.text,
    )


def _shared(array: Array, variable: Variable, scope: Scope) -> str:
    extents = "".join(f"[{scope.integer(n)}]" for n in variable.extents)
    text = f"{variable.element(scope.dialect)} {variable.text}{extents or '[1]'}"
    return f"{scope.dialect.aligned.format(array=text, align=max(64, array.align))};"


def _types(kernel: KernelTree) -> Iterator[ElementType]:
    yield from (p.type for p in kernel.function.parameters)
    for statement in walk(kernel.function.body):
        if isinstance(statement, Array):
            yield statement.type
        for value in values_of(statement):
            yield value.type
