"""Long computations over variables of an iteration are steps of the value that they lead to.

    for (i ...) {                              for (i ...)
      p = a[i]; q = b[i];                        c[i] = { p = a[i]; q = b[i]; r = p < q ? p : q;
      r = p < q ? p : q;              ->                  p = p < q ? q : p; ...; return r * p }
      p = p < q ? q : p; ...
      c[i] = r * p;
    }

Each value in place of its name (``forward_substitution``) would write most of them many times: the text of a
network that sorts nine values doubles with each second comparison. What is not substituted gets an array with
an element for each iteration. As steps the variables are registers, and the part has fewer statements.

Source: md_poly, Sec. 3.2.2, Listing 2 (a scalar function made of statements).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from polyloom.ir.expressions import (
    Assign,
    Expression,
    Local,
    Procedure,
    Read,
    has_procedure,
    instructions,
    walk,
)
from polyloom.ir.procedures.variables import useful
from polyloom.ir.rebuild import read_positions, rebuilt
from polyloom.scop.dependence.nesting import Entries, order_of, schedules, shares_all_loops
from polyloom.scop.joined_reads import appended_reads
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopArray, ScopStatement
from polyloom.scop.preparation.forward_substitution import LONGEST_TEXT, as_stored
from polyloom.scop.preparation.statements import without
from polyloom.scop.rewrite import moved_reads

MOST_TIMES = 4
"""How often steps may be written, for several results: compilers of C see that they are the same."""


def with_steps(scop: Scop) -> Scop:
    """Return the part with long computations of variables as steps of what stores their results."""
    entries = schedules(scop)
    for run in list(_runs(scop, entries)):
        scop = _with_steps_of(scop, run)
    return scop


def _runs(scop: Scop, entries: Mapping[str, Entries]) -> Iterator[list[ScopStatement]]:
    """Yield statements that follow one another in each iteration of the same loops, unconditionally."""
    run: list[ScopStatement] = []
    for statement in sorted(scop.statements, key=lambda s: order_of(entries[s.name])):
        if run and not (_is_plain(statement) and _follows(run[-1], statement, entries)):
            yield run
            run = []
        if _is_plain(statement):
            run.append(statement)
    if run:
        yield run


def _is_plain(statement: ScopStatement) -> bool:
    return statement.condition is None and not has_procedure(statement.value) and bool(statement.iterators)


def _follows(before: ScopStatement, statement: ScopStatement, entries: Mapping[str, Entries]) -> bool:
    same = shares_all_loops(entries[before.name], entries[statement.name])
    return same and bool(before.domain.set_tuple_name(statement.name).is_equal(statement.domain))


def _with_steps_of(scop: Scop, run: Sequence[ScopStatement]) -> Scop:
    """Return the part with the variables of a run as steps, where their values would be written too often."""
    variables = _variables(scop, run)
    results = [s for s in run if s.target.array not in variables and _reads(s) & variables.keys()]
    if not results or not _may_wait(run, variables, results[-1]):
        return scop
    if max(_written(run, variables, results)) <= LONGEST_TEXT:
        return scop
    together = results if _may_be_together(run, variables, results[-1]) else ()
    made = {s.name: _with_own_steps(s, run, variables, together or (s,)) for s in results}
    if not together and sum(_steps(s) for s in made.values()) > MOST_TIMES * len(run):
        return scop
    statements = tuple(made.get(s.name, s) for s in scop.statements)
    return without(replace(scop, statements=statements), {s.name for s in run if s.target.array in variables})


def _variables(scop: Scop, run: Sequence[ScopStatement]) -> Mapping[str, ScopArray]:
    """Return the variables that only a run uses, and sets before that; those in subscripts are none."""
    own = {s.name for s in run}
    found = {a.name: a for a in scop.arrays if a.origin is Origin.INNER and not a.shape}
    for statement in scop.statements:
        used = {statement.target.array} | _reads(statement)
        kept = found.keys() - used if statement.name not in own else found.keys() - _in_subscripts(statement)
        found = {name: found[name] for name in kept}
    given: set[str] = set()
    for statement in run:
        early = _reads(statement) - given
        found = {name: array for name, array in found.items() if name not in early}
        given.add(statement.target.array)
    return {name: found[name] for name in found if name in given and name != scop.returned}


def _reads(statement: ScopStatement) -> set[str]:
    return {read.array for read in statement.reads}


def _in_subscripts(statement: ScopStatement) -> set[str]:
    accesses = (statement.target, *statement.reads)
    indices = (e for access in accesses for e in (*access.indices, *dict(access.computed).values()))
    return {statement.reads[k].array for k in read_positions(*indices)}


def _may_wait(run: Sequence[ScopStatement], variables: Collection[str], last: ScopStatement) -> bool:
    """Whether what steps read is the same where the last result is stored."""
    steps = [s for s in run if s.target.array in variables]
    return not _written_before(run, variables, last) & {name for s in steps for name in _reads(s)}


def _may_be_together(run: Sequence[ScopStatement], variables: Collection[str], last: ScopStatement) -> bool:
    """Whether all values of a run may be known before the first one is stored, or after."""
    read = {name for s in run[: run.index(last) + 1] for name in _reads(s)}
    return not _written_before(run, variables, last) & read


def _written_before(
    run: Sequence[ScopStatement], variables: Collection[str], last: ScopStatement
) -> set[str]:
    return {s.target.array for s in run[: run.index(last)] if s.target.array not in variables}


def _with_own_steps(
    result: ScopStatement,
    run: Sequence[ScopStatement],
    variables: Mapping[str, ScopArray],
    together: Sequence[ScopStatement],
) -> ScopStatement:
    """Return a statement whose value carries out what gives its variables, each time under another name.

    ``together``: results that have the same steps, which are carried out once.
    """
    both, current, steps, values = result, dict[str, Local](), list[Assign](), dict[str, Local]()
    for statement in run[: run.index(together[-1]) + 1]:
        array = variables.get(statement.target.array)
        if array is None and statement not in together:
            continue
        both, shift = appended_reads(both, statement)
        value = _over(statement, current, shift)
        value = value if array is None else as_stored(value, array)
        if not isinstance(value, Local):
            name = "value" if array is None else array.name
            steps.append(Assign(Local(f"{name}_{len(steps)}", value.type), value))
            value = steps[-1].local
        if array is None:
            values[statement.name] = value
        else:
            current[array.name] = value
    used = {step for value in values.values() for step in useful(tuple(steps), value, _spoken)}
    body = tuple(step for step in steps if step in used)
    return _with_used_reads(replace(both, value=Procedure(body, values[result.name])))


def _over(statement: ScopStatement, current: Mapping[str, Local], shift: int) -> Expression:
    """Return a statement's value over variables, its other reads at later positions."""

    def change(part: Expression) -> Expression | None:
        if not isinstance(part, Read):
            return None
        known = current.get(statement.reads[part.position].array)
        return known or Read(part.position + shift, part.type)

    return rebuilt(statement.value, change)


def _spoken(expression: Expression) -> set[Local]:
    return {part for part in walk(expression) if isinstance(part, Local)}


def _with_used_reads(statement: ScopStatement) -> ScopStatement:
    """Return a statement without reads that it does not use."""
    used = list(read_positions(statement.value))
    for k in used:  # grows while it is walked: data in subscripts of data
        access = statement.reads[k]
        inner = read_positions(*access.indices, *dict(access.computed).values())
        used += [position for position in inner if position not in used]
    own = read_positions(*statement.target.indices, *dict(statement.target.computed).values())
    used = sorted({*used, *own})
    at = {k: number for number, k in enumerate(used)}

    def moved(access: ScopAccess) -> ScopAccess:
        return replace(
            access,
            computed=tuple((place, moved_reads(e, at)) for place, e in access.computed),
            indices=tuple(moved_reads(e, at) for e in access.indices),
        )

    return replace(
        statement,
        target=moved(statement.target),
        reads=tuple(moved(statement.reads[k]) for k in used),
        value=moved_reads(statement.value, at),
    )


def _written(
    run: Sequence[ScopStatement], variables: Mapping[str, ScopArray], results: Sequence[ScopStatement]
) -> Iterator[float]:
    """Yield how many instructions results take with each variable written out wherever it is used."""
    sizes: dict[str, float] = {}
    for statement in run:
        array = variables.get(statement.target.array)
        value = statement.value if array is None else as_stored(statement.value, array)
        read = (statement.reads[part.position].array for part in walk(value) if isinstance(part, Read))
        size = instructions(value) + sum(sizes.get(name, 0) for name in read)
        if array is not None:
            sizes[array.name] = size
        elif statement in results:
            yield size


def _steps(statement: ScopStatement) -> int:
    assert isinstance(statement.value, Procedure)
    return len(statement.value.body)
