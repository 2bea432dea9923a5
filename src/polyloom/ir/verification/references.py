"""What the results of a compiled program are compared with: another way to compute them.

A reference takes the values of the parameters, and the arrays that the program starts from, by name; it
gives what the program should leave. It is made where a file is read, and handed down as a value, so that no
back end needs to know a front end. It shares nothing with the transformations that it checks.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, Span, error
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Role

NDArray = npt.NDArray[Any]
EVALUATOR = "the evaluator's results"


@dataclass(frozen=True, eq=False)
class Expected:
    """What a program should leave in everything that it writes, by name.

    ``by``: who says so, as it stands after "equal to" (``the C program, built by gcc``). ``reading_checked``:
    whether it comes from the file as it stands; else a fault in the reading of the file does not show.
    ``bounds``: by how many error bounds of the program (``rounding/programs``) a run may differ from it; 2
    where it takes other ways to the same values.
    """

    arrays: dict[str, NDArray]
    by: str
    reading_checked: bool
    notes: tuple[str, ...] = ()
    """Why no better reference was used."""
    bounds: float = 1.0
    rounded_elsewhere: Callable[[], Iterator[Mapping[str, NDArray]]] | None = None
    """Gives what the reference leaves where each operation on floats rounds up, down, towards zero; the
    arrays that it started from must be as they were. None where it cannot. Errors: those of the reference."""


Reference = Callable[[Mapping[str, int], Mapping[str, NDArray]], Expected]
"""From parameters and arrays to what is expected; the arrays stay as they are.

Errors: ``access-outside`` where the program, with these arrays, accesses an element that no array has;
``reference-...`` where it cannot be computed.
"""


AS_READ = "the statements as read"


def evaluated(program: HostProgram, by: str = EVALUATOR) -> Reference:
    """Return the evaluator of a program as its reference, which sees nothing of how the program was made.

    Of a tensor program it is the reference of all that is made of it.

    Errors when it is called: ``access-outside`` where the program, with these inputs, accesses an element
    that no array has: a subscript computed from data, or an array that is smaller than it is taken for.
    """

    def results(parameters: Mapping[str, int], arrays: Mapping[str, NDArray]) -> Expected:
        inputs = {b.name: arrays[b.name] for b in program.given}
        try:
            found = evaluate_host(program, parameters, inputs)
        except IndexError as fault:
            raise access_outside(program.name, fault) from fault
        seen = {name: a for name, a in found.items() if program.buffer(name).role is not Role.LOCAL}
        return Expected(seen, by, False)

    return results


def access_outside(name: str, where: object, span: Span | None = None) -> PolyloomError:
    """Return the error of a program that accesses what no array has; ``where``: which array, how far off."""
    message = f"`{name}` accesses an element outside of an array: {where}"
    note = "C gives such a program no meaning; it was not run"
    helps = ["give inputs, or sizes, for which every subscript stays inside of its array"]
    return PolyloomError(error("access-outside", message, span, notes=[note], helps=helps))
