"""The reference of a static control part: the C program; where that cannot be built, the part as read.

Nothing of ``scop/`` but its model is used: no dependences, no plan, no loops. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.c_compilers import CCompiler
from polyloom.frontends.c.read import Part
from polyloom.frontends.c.standalone import NotAlone, standalone
from polyloom.ir.evaluation.uninitialised import garbage
from polyloom.ir.integers import integer
from polyloom.ir.verification.references import Expected
from polyloom.oracle.c_compiler import CannotBuild, find_c_compiler
from polyloom.oracle.compiled_c import ELSEWHERE, SECONDS, CProgram
from polyloom.oracle.interpreter import run_in_order
from polyloom.scop.model import Origin, Scop

NDArray = npt.NDArray[Any]

IN_ORDER = "the statements as read, one after the other in the order of the source"


@dataclass(frozen=True, eq=False)
class CReference:
    """A ``Reference`` of a part of a C file.

    ``options``: with which a C compiler reads the file. ``seconds``: that the C program may take.
    """

    part: Part
    scop: Scop
    options: tuple[str, ...]
    seconds: float = SECONDS
    _built: dict[CCompiler, CProgram] = field(default_factory=dict, init=False)

    def __call__(self, parameters: Mapping[str, int], arrays: Mapping[str, NDArray]) -> Expected:
        """Run the C program; without a C compiler, or where the part cannot be cut out, the interpreter.

        Errors: ``access-outside``, ``reference-...``, ``memory``.
        """
        compiler = find_c_compiler()
        if compiler is None:
            return self.interpreted(parameters, arrays, ("there is no C compiler",))
        try:
            return self.compiled(compiler, parameters, arrays)
        except (NotAlone, CannotBuild) as fault:
            return self.interpreted(parameters, arrays, (f"the C program was not used: {fault}",))

    def compiled(
        self, compiler: CCompiler, parameters: Mapping[str, int], arrays: Mapping[str, NDArray]
    ) -> Expected:
        """Run the part as the compiler understands it. Errors: ``NotAlone``, ``CannotBuild``."""
        types = {p.name: p.type.dtype for p in self.scop.parameters}
        scalars = {name: np.array(parameters[name], dtype) for name, dtype in types.items()}
        program = self._program(compiler)
        found = self._written(arrays, program.run({**arrays, **scalars}))

        def rounded_elsewhere() -> Iterator[dict[str, NDArray]]:
            for rounding in ELSEWHERE:
                again = program.run({**arrays, **scalars}, rounding)
                yield {name: again[name] for name in found}

        by = f"the C program, built by {compiler.name}"
        return Expected(found, by, True, rounded_elsewhere=rounded_elsewhere)

    def _program(self, compiler: CCompiler) -> CProgram:
        """Return the part as a program, which is built once."""
        if compiler not in self._built:
            alone = standalone(self.part, self.scop)
            program = CProgram(self.scop.name, self.scop.source, alone, compiler, self.options, self.seconds)
            self._built[compiler] = program
        return self._built[compiler]

    def interpreted(
        self, parameters: Mapping[str, int], arrays: Mapping[str, NDArray], notes: tuple[str, ...] = ()
    ) -> Expected:
        """Run the instances of the statements one by one. Errors: ``reference-size``."""
        found = {name: np.array(array, order="C") for name, array in arrays.items()}
        for array in self.scop.arrays:
            if array.origin is Origin.INNER and array.name not in found:
                shape = tuple(integer(n, parameters) for n in array.shape if n is not None)
                found[array.name] = garbage(shape, array.type)
        run_in_order(self.scop, parameters, found)
        return Expected(self._written(arrays, found), IN_ORDER, False, notes)

    def _written(self, before: Mapping[str, NDArray], after: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return what was written: by a statement of the model, or in fact."""
        targets = {s.target.array for s in self.scop.statements}
        outer = [a.name for a in self.scop.arrays if a.origin is not Origin.INNER]
        return {n: after[n] for n in outer if n in targets or not _same(before[n], after[n])}


def _same(before: NDArray, after: NDArray) -> bool:
    return before is after or np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
