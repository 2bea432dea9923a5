"""``@polyloom.jit``: a Python function of affine loops over arrays, compiled for the types of its arguments.

@polyloom.jit
def gemm(alpha, A, B, C):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += alpha * A[i, k] * B[k, j]
"""

from __future__ import annotations

import functools
import inspect
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.api.loops import LoopExplanation
from polyloom.api.reading import Path
from polyloom.device_pipeline import open_program
from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.python import (
    ArrayType,
    Calls,
    Found,
    NumberType,
    TruthType,
    read_python,
    text_of_function,
)
from polyloom.frontends.python.values import Weak
from polyloom.function.arguments import Argument, taken
from polyloom.function.container import write_container
from polyloom.function.jit_documents import Types, calls_document, types_document
from polyloom.function.pages import Times, jit_page, measured
from polyloom.function.python_sources import Document, function_document, signature_document
from polyloom.function.saving import TEXT, Saved, contents, variant_of
from polyloom.ir.text.integers import integer_text
from polyloom.ir.types import ElementType
from polyloom.ir.verification.references import Expected
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.repeated import Repeating
from polyloom.mdh.running import RunResult, run_program
from polyloom.polyhedra.effort import limited
from polyloom.polyhedra.functions import isl_integer
from polyloom.scop.transform import ReductionMode, Transformation, host_program
from polyloom.sources import LoadedHost, Reading

NDArray = npt.NDArray[Any]

JIT = "jit"
"""The part of a saved function's manifest that only functions of Python have."""


@overload
def jit(function: Callable[..., Any]) -> Jitted: ...


@overload
def jit(
    *, fp: str = "reassociate", device: str | None = None, threads: int | None = None
) -> Callable[[Callable[..., Any]], Jitted]: ...


def jit(
    function: Callable[..., Any] | None = None,
    *,
    fp: str = "reassociate",
    device: str | None = None,
    threads: int | None = None,
) -> Jitted | Callable[[Callable[..., Any]], Jitted]:
    """Compile a Python function of affine loops over arrays: when it is called, for the arguments' types.

    ``fp``: ``strict`` keeps the order of sums; ``device``, ``threads``: as of ``polyloom.load``.

    Errors: ``python-source``, ``fp``; when it is called, those of ``Jitted``.
    """
    if fp not in ("reassociate", "strict"):
        helps = ["there are reassociate, strict"]
        raise PolyloomError(error("fp", f"there is no mode `{fp}` of floating point", helps=helps))
    if function is None:
        return lambda given: Jitted(given, fp, device, threads)
    return Jitted(function, fp, device, threads)


@dataclass(eq=False)
class Kind:
    """A function for arguments of certain types.

    ``whole``: its program with all that is known of it, for checks; ``valid``: sizes that were checked.
    """

    calls: Calls
    compiled: CompiledProgram
    whole: Callable[[], CompiledProgram]
    valid: set[tuple[int, ...]] = field(default_factory=set)


@dataclass(frozen=True)
class Signature:
    """What a function of Python takes and gives for arguments of certain types, by name, in order.

    ``outputs``: what it returns; arrays that it changes in place are among ``inputs`` alone. Extents are
    texts: the names of sizes, ``a_0`` for the first extent of ``a``.
    """

    inputs: Mapping[str, Argument]
    outputs: Mapping[str, Argument]


class Jitted(Repeating):
    """A function that is compiled for the types of its arguments, and kept; ``python`` is it as it stands.

    Arrays that it assigns to are changed in place. Sizes and other integers may be others in each call.
    """

    __name__: str

    def __init__(
        self, function: Callable[..., Any], fp: str, device: str | None, threads: int | None
    ) -> None:
        self.python = function
        self._fp, self._device, self._threads = fp, device, threads
        self._signature = inspect.signature(function)
        self._text = text_of_function(function)
        self._kinds: dict[Types, Kind] = {}
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<jit of {self.__name__}{self._signature}, {len(self._kinds)} kinds of arguments compiled>"

    def _checked_call(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        bound = self._bound(arguments, named)
        given = taken(bound)
        kind = self._kind(given.arrays)
        arrays, done = kind.compiled.done((), self._inputs(kind, given.arrays))
        calls = kind.calls
        _check_indices(calls, arrays)
        results = [_result(calls, name, arrays, given.arrays) for name in calls.results]
        is_same = not given.foreign and self._is_plain(results)
        if done is not None and is_same and not calls.truths and not calls.flag:
            known = {n: bound[n] for n in self._signature.bind(*arguments, **named).arguments}
            inside = kind.compiled.signature.names
            places = {name: (name if name in inside else None, value) for name, value in known.items()}
            self._remember(done.again(places, tuple(bound), calls.results))
        back = given.given_back({str(place): result for place, result in enumerate(results)})
        return tuple(bound[n] if n in calls.shapes else r for n, r in zip(calls.results, back, strict=True))

    def _is_plain(self, results: Sequence[Any]) -> bool:
        """Return whether arguments may come by place or by name, and results are arrays."""
        kinds = {p.kind for p in self._signature.parameters.values()}
        return kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD} and all(
            type(r) is np.ndarray for r in results
        )

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """What it takes and gives, for each kind of arguments that it is compiled for, the first first."""
        return tuple(_signature(types, kind) for types, kind in self._kinds.items())

    @property
    def inputs(self) -> Mapping[str, Argument]:
        """What it takes, where it is compiled for one kind of arguments. Errors: ``jit-kinds``."""
        return self._only().inputs

    @property
    def outputs(self) -> Mapping[str, Argument]:
        """What it returns, where it is compiled for one kind of arguments. Errors: ``jit-kinds``."""
        return self._only().outputs

    def _only(self) -> Signature:
        found = self.signatures
        if len(found) != 1:
            called = f"call it once: `{self.__name__}(...)`"
            helps = [
                f"`{self.__name__}.signatures` has what it takes and gives for each" if found else called
            ]
            message = f"`{self.__name__}` is compiled for {len(found)} kinds of arguments"
            raise PolyloomError(error("jit-kinds", message, helps=helps))
        return found[0]

    def run(self, *arguments: Any, check: bool = False, **named: Any) -> RunResult:
        """Run once on copies and tell how long it took; ``check``: compare with the Python function.

        Errors: those of a call.
        """
        given = taken(self._bound(arguments, named)).arrays
        kind = self._kind(given)
        program = kind.whole() if check else kind.compiled
        result = run_program(program, self._inputs(kind, given), check=check)
        _check_indices(kind.calls, result.outputs)
        return result

    def times(self, *arguments: Any, runs: int = 10, **named: Any) -> Times:
        """Measure a call on copies, and each of its kernels: that of the fastest of ``runs``.

        Errors: those of a call.
        """
        return measured(self.__name__, lambda: self.run(*arguments, **named), runs)

    def _repr_html_(self) -> str:
        kinds = [{name: _type_text(kind) for name, kind in types} for types in self._kinds]
        return jit_page(self.__name__, tuple(self._signature.parameters), kinds)

    def explain(self, *arguments: Any, **named: Any) -> LoopExplanation:
        """Say what each loop becomes for arguments of these types, and why; print the result."""
        found, transformation = self._read(_types_of(taken(self._bound(arguments, named)).arrays))
        return LoopExplanation(((found.scop, transformation),))

    def save(self, path: Path, *, source: bool = True) -> None:
        """Write it as one file with the code that was built; ``polyloom.load(path)`` takes it back.

        It is built for the types and sizes of earlier calls. Loaded, it runs for these without a compiler.
        ``source``: whether its text goes in as well, for other types and sizes, ``explain`` and checks; left
        out where a name in it means neither a number nor a module, a function with a text, or one of NumPy.
        Defaults of arguments are kept that are numbers.

        Errors: ``save-sizes`` before the first call, ``save-device``, ``file-unwritable``.
        """
        called = {types: kind for types, kind in self._kinds.items() if kind.valid}
        if not called:
            helps = [f"call it once: `{self.__name__}(...)`"]
            message = "no types of arguments are known for which it is to be built"
            raise PolyloomError(error("save-sizes", message, helps=helps))
        text = self._document() if source else None
        variants = [variant_of(kind.compiled, (), None, {}, {}) for kind in called.values()]
        saved = Saved(self.__name__, None, Reading(), {}, variants)
        manifest, members = contents(saved, (TEXT, self.__name__, json.dumps(text).encode()))
        kinds = [
            {
                "types": types_document(types),
                "calls": calls_document(kind.calls, text),
                "sizes": sorted(kind.valid),
            }
            for types, kind in called.items()
        ]
        signature = signature_document(self._signature)
        about = {"fp": self._fp, "doc": self.__doc__, "signature": signature, "kinds": kinds}
        write_container(pathlib.Path(path), {**manifest, JIT: about}, members)

    def _document(self) -> Document | None:
        """Return its text as a file keeps it; None where it has none that can be kept."""
        return function_document(self.python)

    def _bound(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        try:
            bound = self._signature.bind(*arguments, **named)
        except TypeError as fault:
            helps = [f"`{self.__name__}{self._signature}`"]
            raise PolyloomError(error("argument-count", str(fault), helps=helps)) from fault
        bound.apply_defaults()
        return dict(bound.arguments)

    def _kind(self, given: Mapping[str, Any]) -> Kind:
        types = _types_of(given)
        if types not in self._kinds:
            self._kinds[types] = self._made(types)
        return self._kinds[types]

    @limited("the loops of the function")
    def _read(self, types: Types) -> tuple[Found, Transformation]:
        found = read_python(self._text, dict(types))
        return found, host_program(found.scop, ReductionMode.DETECT, strict=self._fp == "strict")

    @limited("the loops of the function")
    def _made(self, types: Types) -> Kind:
        found, transformation = self._read(types)
        remarks = (*found.scop.remarks, *transformation.remarks)
        truths = {name: kind.value for name, kind in types if isinstance(kind, TruthType)}
        known = {name: truths.get(name, 0) for name, _ in types}

        def reference(parameters: Mapping[str, int], arrays: Mapping[str, NDArray]) -> Expected:
            return self._expected(found, known, parameters, arrays)

        loaded = LoadedHost(transformation.program, found.scop, remarks, reference)
        compiled = open_program(loaded, choose(self._device, threads=self._threads))
        return Kind(found.calls, compiled, lambda: compiled)

    def _expected(
        self,
        found: Found,
        known: Mapping[str, int],
        parameters: Mapping[str, int],
        arrays: Mapping[str, NDArray],
    ) -> Expected:
        """Run the Python function itself on copies; ``known``: its arguments that no run has."""
        calls = found.calls
        copies = {name: _as_truths(np.array(a), name in calls.truths) for name, a in arrays.items()}
        values = {**{n: a if n in calls.shapes else a[()] for n, a in copies.items()}, **parameters}
        try:
            result = self.python(*(values.get(name, value) for name, value in known.items()))
        except Exception as fault:
            message = f"the Python function raises `{type(fault).__name__}`: {fault}"
            raise PolyloomError(error("python-raises", message)) from fault
        left = dict(zip(calls.results, result if isinstance(result, tuple) else (result,), strict=False))
        written = {s.target.array for s in found.scop.statements}
        found_arrays = {name: np.asarray(value) for name, value in left.items()}
        found_arrays |= {name: copies[name] for name in written if name in copies and name not in left}
        found_arrays |= {calls.flag: np.zeros((), np.int64)} if calls.flag else {}
        types = {a.name: a.type.dtype for a in found.scop.arrays}
        return Expected({n: a.astype(types[n]) for n, a in found_arrays.items()}, "the Python function", True)

    def _inputs(self, kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by the names of the program. Errors: ``python-index``."""
        calls, program = kind.calls, kind.compiled.program
        sizes = {
            n: int(v) for n, v in given.items() if isinstance(v, int | np.integer) and type(v) is not bool
        }
        for name, names in calls.shapes.items():
            sizes |= dict(zip(names, given[name].shape, strict=True))
        known = tuple(sizes.values())
        if known not in kind.valid:
            if not _holds(calls.valid, sizes):
                said = ", ".join(f"{name} = {value}" for name, value in sizes.items())
                notes = [f"{said}; NAME_0 is the first extent of NAME"]
                message = f"an index of `{program.name}` is outside its array with these sizes"
                if calls.assumed:
                    message += ", slices differ in length or end before 0, an `assert` fails"
                    message += ", what is unpacked has more or fewer elements than names"
                    message += ", or there is no largest element"
                helps = ["subscripts run from 0 to the extent less 1, or from the end: `x[-k]`, `k` above 0"]
                raise PolyloomError(error("python-index", message, notes=notes, helps=helps))
            kind.valid.add(known)
        numbers = {p.name: sizes[p.name] for p in program.parameters}
        buffers = {b.name for b in program.buffers}
        held = {n: v.view(np.uint8) if n in calls.truths else v for n, v in given.items() if n in buffers}
        return {**numbers, **held}


def _signature(types: Types, kind: Kind) -> Signature:
    calls, program = kind.calls, kind.compiled.program
    inputs = {name: _argument(name, of, calls) for name, of in types}

    def result(name: str) -> Argument:
        if name in inputs:
            return inputs[name]
        buffer = program.buffer(name)
        type_name = "bool" if name in calls.truths else buffer.type.value
        if name in calls.weak - calls.truths:
            type_name = buffer.type.dtype.kind.translate({ord("i"): "int", ord("f"): "float"})
        return Argument(name, type_name, tuple(map(integer_text, buffer.shape)))

    return Signature(inputs, {name: result(name) for name in calls.results})


def _argument(name: str, kind: ArrayType | NumberType | TruthType, calls: Calls) -> Argument:
    if isinstance(kind, ArrayType):
        return Argument(name, kind.type.value, calls.shapes[name])
    return Argument(name, "bool" if isinstance(kind, TruthType) else kind.kind.value, ())


def _result(calls: Calls, name: str, arrays: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    found = arrays.get(name, given.get(name))
    if isinstance(found, np.ndarray):
        found = _as_truths(found, name in calls.truths)
    if isinstance(found, np.ndarray) and not found.shape:
        return found.item() if name in calls.weak else found[()]
    return found


def _check_indices(calls: Calls, arrays: Mapping[str, Any]) -> None:
    """Refuse what a run left where an index that it read from data was outside. Errors: ``python-index``."""
    number = int(arrays[calls.flag]) if calls.flag else 0
    if number:
        array, span = calls.asked[number - 1]
        message = f"an index of `{array}` is outside the array"
        helps = ["indices that are read from data run from less the extent to the extent less 1"]
        notes = ["arrays that the function writes may hold anything now"]
        raise PolyloomError(error("python-index", message, span, notes=notes, helps=helps))


def _types_of(given: Mapping[str, Any]) -> Types:
    return tuple((name, _type_of(name, value)) for name, value in given.items())


def _type_of(name: str, value: Any) -> ArrayType | NumberType | TruthType:
    """Return the type of an argument. Errors: ``argument-type``."""
    if isinstance(value, bool | np.bool_):
        return TruthType(bool(value))
    if isinstance(value, int | np.integer):
        return NumberType(Weak.INT)
    if isinstance(value, np.ndarray) and value.ndim:
        if (kind := _element(value.dtype)) is not None:
            return ArrayType(kind, value.ndim)
    elif type(value) is float:
        return NumberType(Weak.FLOAT)
    elif isinstance(value, np.floating) and (kind := _element(np.dtype(type(value)))) is not None:
        return NumberType(kind)
    described = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
    helps = ["give an array of NumPy of one or more dimensions, an `int`, a `float` or a `bool`"]
    raise PolyloomError(error("argument-type", f"`{name}` is {described}", helps=helps))


def _type_text(kind: ArrayType | NumberType | TruthType) -> str:
    """Return a type as Numba writes it: ``float64[:, :]``."""
    if isinstance(kind, ArrayType):
        return f"{kind.type.value}[{', '.join(':' * kind.rank)}]"
    return str(kind.value) if isinstance(kind, TruthType) else kind.kind.value


def _as_truths(array: NDArray, is_truth: bool) -> NDArray:
    """Return bytes that hold truth values as such."""
    return array.view(np.bool_) if is_truth and array.dtype == np.uint8 else array


def _element(dtype: np.dtype[Any]) -> ElementType | None:
    try:
        return ElementType(dtype.name)
    except ValueError:
        return None


def _holds(valid: isl.Set, sizes: Mapping[str, int]) -> bool:
    for k in range(valid.dim(isl.dim_type.param)):
        value = sizes[str(valid.get_dim_name(isl.dim_type.param, k))]
        valid = valid.fix_val(isl.dim_type.param, k, isl_integer(value))
    return not valid.is_empty()
