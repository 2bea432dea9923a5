"""Local scalars, and arrays of a few elements, that one thread alone uses in loops stay in registers.

    scratch int32 k                          int32 k_here in a register
    k = 0                                    k_here = 0
    for i: if (b[i] > 0) { a[k] = b[i];  ->  for i: if (b[i] > 0) { a[k_here] = b[i];
                           k = k + 1 }                              k_here = k_here + 1 }

Scratch memory comes from the caller, so a C compiler stores such a scalar and loads it again between any two
stores that may be to the same place, and each point waits for the one before by way of memory.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from math import prod

from polyloom.ir.expressions import Constant
from polyloom.ir.naming import Names
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    Load,
    Parameter,
    Space,
    Statement,
    Store,
)
from polyloom.mdh.tree.rewrite import arrays_used, declared_in, loads_of, renamed_array, walk
from polyloom.mdh.tree.trips import is_parallel
from polyloom.polyhedra.loops.tree import Number

MOST_ELEMENTS = 16
"""Arrays of more elements stay in memory: no registers would be left."""


def scalars_in_registers(function: Function, kept: Collection[str] = ()) -> Function:
    """Return a program whose small scratch arrays are variables where loops of one thread alone use them.

    Keeps true: the same values. What is used around parallel loops stays in memory, since other threads may
    use it too, and so does what nothing here stores: that was stored when constants were bound. ``kept``:
    arrays of which a part was (the border of padded data, which runs fill inside).
    """
    names = Names({*function.arrays, *function.integers, *declared_in(function.body)})
    body, runs = function.body, _runs(function.body)
    seen_otherwise = {*kept, *(reshaped.parameter for reshaped in function.reshaped)}
    own: dict[int, list[Statement]] = {}
    for parameter in function.parameters:
        name = parameter.name
        at = _where(body, name) if _is_small(parameter) and name not in seen_otherwise else []
        if at and _is_alone(body, runs, at) and _is_in_a_loop(body, at, name) and _is_stored(body, at, name):
            here = names.of((name,), f"{name}_here")
            begins = _begins(body[at[0]], name)
            own.setdefault(at[0], []).extend(_declared(parameter, here, empty=not begins))
            body = renamed_array(body, name, Load(here))
    made = ((*own.get(k, ()), statement) for k, statement in enumerate(body))
    return replace(function, body=tuple(chain.from_iterable(made)))


def _is_small(parameter: Parameter) -> bool:
    sizes = [extent.value for extent in parameter.shape if isinstance(extent, Number)]
    return parameter.scratch and len(sizes) == len(parameter.shape) and 0 < prod(sizes) <= MOST_ELEMENTS


def _declared(parameter: Parameter, name: str, *, empty: bool) -> Iterator[Statement]:
    """Yield a variable; ``empty``: with zeros, where it may be read, and dropped, before it is stored."""
    space = Space.PRIVATE if parameter.shape else Space.REGISTER
    yield Array(name=name, type=parameter.type, shape=parameter.shape, space=space)
    if empty:
        zero = Compute(Constant(0, parameter.type), ())
        sizes = (extent.value for extent in parameter.shape if isinstance(extent, Number))
        yield from (Store(name, tuple(map(Number, at)), zero) for at in product(*map(range, sizes)))


def _where(code: Code, name: str) -> list[int]:
    """Return the statements that speak of an array."""
    return [k for k, statement in enumerate(code) if name in arrays_used((statement,))]


def _is_stored(code: Code, at: Sequence[int], name: str) -> bool:
    stores = (s for s in walk(tuple(code[k] for k in at)) if isinstance(s, Store))
    return any(store.array == name for store in stores)


def _begins(statement: Statement, name: str) -> bool:
    """Whether an array has its value from here."""
    return (
        isinstance(statement, Store)
        and statement.array == name
        and all(load.array != name for load in loads_of(statement))
    )


def _runs(code: Code) -> list[int]:
    """Return for each statement the number of its run of statements that one thread does."""
    found, number = [], 0
    for statement in code:
        number += is_parallel(statement)
        found.append(number)
        number += is_parallel(statement)
    return found


def _is_alone(code: Code, runs: list[int], at: list[int]) -> bool:
    """Whether some statements are in one run, without parallel loops."""
    return runs[at[0]] == runs[at[-1]] and not any(is_parallel(code[k]) for k in at)


def _is_in_a_loop(code: Code, at: list[int], name: str) -> bool:
    """Whether a loop uses a scalar: else it is loaded and stored once."""
    loops = (s for s in walk(tuple(code[k] for k in at)) if isinstance(s, For))
    return any(name in arrays_used(loop.body) for loop in loops)
