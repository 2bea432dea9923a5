"""Local scalars that one thread alone uses in loops stay in registers.

    scratch int32 k                          int32 k_here in a register
    k = 0                                    k_here = 0
    for i: if (b[i] > 0) { a[k] = b[i];  ->  for i: if (b[i] > 0) { a[k_here] = b[i];
                           k = k + 1 }                              k_here = k_here + 1 }

Scratch memory comes from the caller, so a C compiler stores such a scalar and loads it again between any two
stores that may be to the same place, and each point waits for the one before by way of memory.

Not in the papers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from polyloom.ir.naming import Names
from polyloom.mdh.tree.nodes import Array, Code, For, Function, Load, Space, Statement, Store
from polyloom.mdh.tree.rewrite import arrays_used, declared_in, loads_of, renamed_array, walk
from polyloom.mdh.tree.trips import is_parallel


def scalars_in_registers(function: Function) -> Function:
    """Return a program with scratch scalars in registers where statements that no threads share use them.

    Keeps true: the same values. Scalars of branches and loops around parallel ones stay in memory, since
    other threads may use them too.
    """
    names = Names({*function.arrays, *function.integers, *declared_in(function.body)})
    body, runs = function.body, _runs(function.body)
    own: dict[int, list[Array]] = {}
    for parameter in function.parameters:
        at = _where(function.body, parameter.name) if parameter.scratch and not parameter.shape else []
        if (
            at
            and _begins(function.body[at[0]], parameter.name)
            and _is_alone(function.body, runs, at)
            and _is_in_a_loop(function.body, at, parameter.name)
        ):
            name = names.of((parameter.name,), f"{parameter.name}_here")
            own.setdefault(at[0], []).append(
                Array(name=name, type=parameter.type, shape=(), space=Space.REGISTER)
            )
            body = renamed_array(body, parameter.name, Load(name))
    made = ((*own.get(k, ()), statement) for k, statement in enumerate(body))
    return replace(function, body=tuple(chain.from_iterable(made)))


def _where(code: Code, name: str) -> list[int]:
    """Return the statements that speak of an array."""
    return [k for k, statement in enumerate(code) if name in arrays_used((statement,))]


def _begins(statement: Statement, name: str) -> bool:
    """Whether a scalar has its value from here: else it may have been stored when constants were bound."""
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
