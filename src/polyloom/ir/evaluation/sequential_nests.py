"""A nest for one point of its parallel dimensions, as a Python function on NumPy scalars.

The evaluator on lanes is slow where there are few of them; this text does the same, element by element:

    c1 = 0
    while c1 < n:
        C[c0, c1] = C[c0, c1] * beta[()]
        c1 += 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy.typing as npt

from polyloom.ir.evaluation.python_text import Known, Leaves, integer_text
from polyloom.ir.expressions import Expression
from polyloom.ir.host import Assignment, Index, Nest, View
from polyloom.polyhedra.loops.tree import Branch, Instance, IntExpression, Loop, Tree, sum_of

NDArray = npt.NDArray[Any]
Arrays = Mapping[str, NDArray]
Serial = Callable[[Arrays, Mapping[str, int], Sequence[int]], None]


@lru_cache(maxsize=256)
def serial_function(node: Nest) -> Serial:
    """Return a function of arrays (private ones too), parameters and a point, which does the body there.

    Errors when it is called: IndexError outside of a buffer.
    """
    writer = _Writer(node)
    text = "\n".join(writer.lines())
    found: dict[str, Any] = {**writer.known.names, "inside": _inside}
    exec(compile(text, f"<{node.name}>", "exec"), found)
    run: Serial = found["run"]
    return run


class _Writer:
    """Writes the function; ``known`` is what its text calls."""

    def __init__(self, node: Nest) -> None:
        self.node = node
        self.bound = {*node.iterators}
        self.free: dict[str, str] = {}
        self.known = Known()
        self.variables: dict[str, str] = {}
        self.assignments = {a.name: a for a in node.assignments}

    def lines(self) -> Iterator[str]:
        views = [v for a in self.node.assignments for v in (a.target, *a.reads)]
        buffers = dict.fromkeys(v.buffer for v in views)
        yield "def run(arrays, names, point):"
        for buffer in buffers:
            yield f"    {self._variable(f'{buffer}[]')} = arrays[{buffer!r}]"
        for k, iterator in enumerate(self.node.iterators):
            yield f"    {self._variable(iterator)} = point[{k}]"
        body = list(self._tree(self.node.body))
        yield from (f"    {variable} = names[{name!r}]" for name, variable in self.free.items())
        yield from (f"    {line}" for line in body)

    def _variable(self, name: str) -> str:
        return self.variables.setdefault(name, f"v{len(self.variables)}")

    def _tree(self, tree: Tree) -> Iterator[str]:
        for node in tree:
            match node:
                case Loop(iterator=iterator, body=body):
                    name = self._variable(iterator)
                    yield f"{name} = {self._integer(node.start)}"
                    self.bound.add(iterator)
                    yield f"while {self._integer(node.condition)}:"
                    yield from (f"    {line}" for line in self._tree(body))
                    yield f"    {name} += {self._integer(node.step)}"
                case Branch(condition=condition, body=body, otherwise=otherwise):
                    yield f"if {self._integer(condition)}:"
                    yield from (f"    {line}" for line in self._tree(body))
                    yield "else:"
                    yield from (f"    {line}" for line in self._tree(otherwise))
                case Instance():
                    yield from self._instance(node)
        yield "pass"

    def _instance(self, node: Instance) -> Iterator[str]:
        assignment = self.assignments[node.statement]
        text = _At(self, assignment, node.arguments)
        indent = ""
        if assignment.condition is not None:
            yield f"if {text.value(assignment.condition)}:"
            indent = "    "
        target = assignment.target
        array = self._variable(f"{target.buffer}[]")
        yield f"{indent}value = {text.value(assignment.value)}"
        yield f"{indent}place = {text.place(target)}"
        yield f"{indent}inside({assignment.name!r}, {target.buffer!r}, place, {array}.shape)"
        yield f"{indent}{array}[place] = value"

    def _integer(self, expression: IntExpression) -> str:
        return integer_text(expression, self.named)

    def named(self, name: str) -> str:
        """Return the variable of an iterator, a parameter or a host iterator."""
        if name not in self.bound:
            self.free[name] = self._variable(name)
        return self._variable(name)


class _At:
    """The texts of one assignment at one instance."""

    def __init__(self, writer: _Writer, assignment: Assignment, arguments: tuple[IntExpression, ...]) -> None:
        self.writer = writer
        self.assignment = assignment
        self.arguments = arguments

    def place(self, view: View) -> str:
        """Return the element of a view as a tuple of Python integers."""
        return f"({''.join(f'{self._index(i)}, ' for i in view.indices)})"

    def _index(self, index: Index | Expression) -> str:
        if not isinstance(index, Index):
            return f"int({self.value(index)})"
        terms = list(zip(index.coefficients, self.arguments, strict=True))
        return self.writer._integer(sum_of([*terms, (1, index.offset)]))

    def value(self, expression: Expression) -> str:
        """Return a scalar function; a choice evaluates one side only."""
        writer = self.writer
        return writer.known.value(
            expression,
            Leaves(self._read, lambda k: writer._integer(self.arguments[k]), writer.named),
        )

    def _read(self, position: int) -> str:
        view = self.assignment.reads[position]
        return f"{self.writer._variable(f'{view.buffer}[]')}[{self.place(view)}]"


def _inside(who: str, buffer: str, place: tuple[int, ...], shape: tuple[int, ...]) -> None:
    for k, n in zip(place, shape, strict=True):
        if not 0 <= k < n:
            raise IndexError(f"{who} writes {buffer} at {k}, of {n} elements")
