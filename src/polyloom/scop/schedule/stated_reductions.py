"""``#pragma mdh parallel(++, ++, +: C[i][j])``, checked against the dependences.

Source: md_poly, Sec. 3.2.2, solution 2. Unlike the paper, what the user states is not believed but proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import islpy as isl

from polyloom.diagnostics import Diagnostic, error
from polyloom.ir.expressions import BinaryOp, CompareOp
from polyloom.scop.dependence.dependences import Dependences
from polyloom.scop.dependence.reductions import Operator, Update
from polyloom.scop.model import Scop, ScopStatement, StatedParallel
from polyloom.scop.schedule.custom_combiners import function_errors, functions_of
from polyloom.scop.schedule.loop_verdicts import SourceLoop, carried, loops_of, witness_of

_LARGER = (CompareOp.GT, CompareOp.GE, "greater", "greater or NaN")
_SMALLER = (CompareOp.LT, CompareOp.LE, "less", "less or NaN")
SIGNS: Mapping[str, tuple[Operator | str, ...]] = {
    "+": (BinaryOp.ADD, "+"),
    "*": (BinaryOp.MULTIPLY, "*"),
    "max": (BinaryOp.MAXIMUM, BinaryOp.FMAX, *_LARGER),
    "min": (BinaryOp.MINIMUM, BinaryOp.FMIN, *_SMALLER),
    "fmax": (BinaryOp.FMAX, BinaryOp.MAXIMUM, *_LARGER),
    "fmin": (BinaryOp.FMIN, BinaryOp.MINIMUM, *_SMALLER),
    "&": (BinaryOp.BIT_AND,),
    "|": (BinaryOp.BIT_OR,),
    "^": (BinaryOp.BIT_XOR,),
}
"""What the signs of a pragma stand for: operators, and the names of those that keep the order."""
CONCATENATE = "++"


def nest_of(scop: Scop, stated: StatedParallel) -> tuple[SourceLoop, ...]:
    """Return the loops of the nest that a pragma stands before, outermost first; one for each depth."""
    loops = loops_of(scop)
    outer = next((loop for loop in loops if loop.span == stated.loop), None)
    if outer is None:
        return ()
    inside = {s.name for s in outer.statements}
    deeper = [loop for loop in loops if {s.name for s in loop.statements} <= inside]
    chain = [loop for loop in deeper if loop.depth >= outer.depth]
    return tuple(sorted(chain, key=lambda loop: loop.depth))


def stated_updates(scop: Scop, updates: Mapping[str, Update]) -> dict[str, Update]:
    """Return the updates that a pragma names the operator of."""
    result = {}
    for stated in scop.stated:
        operators = {op for sign in stated.operators for op in SIGNS.get(sign, ())}
        names = {s.name for loop in nest_of(scop, stated) for s in loop.statements}
        result.update({n: u for n, u in updates.items() if n in names and u.op in operators})
    return result


def stated_errors(scop: Scop, found: Dependences, ordered: Mapping[str, Update]) -> Iterator[Diagnostic]:
    """Yield an error for every pragma that the dependences contradict, with two instances that show it.

    ``ordered``: the updates by functions of the source.
    """
    yield from function_errors(scop)
    for stated in scop.stated:
        loops = nest_of(scop, stated)
        depths = sorted({loop.depth for loop in loops})
        if len(depths) != len(stated.operators):
            message = f"{_count(len(stated.operators))} for a nest of {_count(len(depths), 'loop')}"
            yield error(
                "mdh-dimensions", message, stated.span, helps=["one operator for each loop, outermost first"]
            )
            continue
        for loop in loops:
            yield from _contradiction(stated, loop, stated.operators[loop.depth - depths[0]], found, ordered)


def _count(number: int, what: str = "operator") -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _contradiction(
    stated: StatedParallel,
    loop: SourceLoop,
    sign: str,
    found: Dependences,
    ordered: Mapping[str, Update],
) -> Iterator[Diagnostic]:
    """Yield an error if a loop carries what its operator does not allow."""
    iterator = loop.statements[0].iterators[loop.depth]
    if sign != CONCATENATE and sign not in SIGNS and sign not in functions_of(stated):
        message = f"the operator `{sign}` of the loop over `{iterator}` is not known"
        yield error(
            "mdh-operator", message, stated.span, helps=[f"operators are {', '.join([CONCATENATE, *SIGNS])}"]
        )
        return
    allowed = SIGNS.get(sign, ())
    for edge, relation in carried(loop, found.edges):
        if edge.relaxed in allowed and edge.relaxed is not None:
            continue
        own = ordered.get(edge.source)
        if own is not None and edge.source == edge.sink and own.op in (sign, *allowed):
            continue
        message = f"`{sign}` is stated for the loop over `{iterator}`, whose iterations depend on each other"
        notes = [str(witness_of(edge, relation))]
        yield error("mdh-contradiction", message, stated.span, notes=notes, helps=_ways(edge.relaxed))
        return
    if allowed and all(_keeps(statement, loop.depth) for statement in loop.statements):
        message = (
            f"`{sign}` is stated for the loop over `{iterator}`, whose iterations write different elements"
        )
        yield error("mdh-contradiction", message, stated.span, helps=[f"state `{CONCATENATE}` for it"])


def _keeps(statement: ScopStatement, depth: int) -> bool:
    """Whether the element that a statement writes tells the iteration of a loop."""
    relation = statement.target.relation.gist_domain(statement.domain)
    return bool(relation.involves_dims(isl.dim_type.in_, depth, 1))


def _ways(found: Operator | None) -> Sequence[str]:
    if found is None:
        return ["leave the pragma out: `--reductions detect` finds what is parallel"]
    sign = found.value if isinstance(found, CompareOp) else found.name
    return [f"the loop combines with `{sign}`: state `{sign}`"]
