"""Host programs as text to be read: md_homs in the notation of their paper, loops around them.

    program gemm(int32 m, int32 n, int32 p)
      updated float64 C[m][n]
    S1 : out_view(C)(i, j)(C[i][j]) . md_hom(f, (++, ++, +)) . in_view(A, B)(i, j, k)(A[i][k], B[k][j])
      over  i < m, j < n, k < p
      f     A[i][k] * B[k][j]

Source: md_poly, Sec. 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from polyloom.ir.expressions import Expression, Read, walk
from polyloom.ir.host import (
    Assignment,
    Buffer,
    Copy,
    HostLeaf,
    HostProgram,
    Index,
    MdHom,
    Nest,
    Order,
    View,
)
from polyloom.ir.text.expressions import expression_text
from polyloom.ir.text.integers import integer_text, loop_lines, tree_lines
from polyloom.polyhedra.loops.tree import IntExpression, Name, sum_of


def print_host(program: HostProgram) -> str:
    """Return a host program as lines of text."""
    names = ", ".join(f"{p.type.value} {p.name}" for p in program.parameters)
    lines = [f"program {program.name}({names})"]
    if program.context is not None:
        lines.append(f"  where {integer_text(program.context)}")
    width = max((len(b.role.value) for b in program.buffers), default=0)
    lines += [f"  {b.role.value:{width}} {buffer_text(b)}" for b in program.buffers]
    return "\n".join([*lines, "", *loop_lines(program.body, node_lines)]) + "\n"


def buffer_text(buffer: Buffer) -> str:
    """Return a declaration: ``float32 A[m][n]``."""
    return f"{buffer.type.value} {buffer.name}" + "".join(f"[{integer_text(n)}]" for n in buffer.shape)


def node_lines(node: HostLeaf) -> Iterator[str]:
    """Yield the lines of a host node that is no loop or branch."""
    match node:
        case Copy(source=source, target=target):
            yield f"copy {source} to {target}"
        case MdHom():
            yield from md_hom_lines(node)
        case Nest():
            yield from nest_lines(node)


def md_hom_lines(node: MdHom) -> Iterator[str]:
    """Yield an md_hom in the paper's notation, and below it what it is made of."""
    yield f"{node.name} : {md_hom_text(node)}"
    yield from (f"  {label:7} {text}" for label, text in md_hom_parts(node))


def md_hom_text(node: MdHom) -> str:
    """Return ``out_view(C)(i, j)(C[i][j]) . md_hom(f, (++, ++, +)) . in_view(A, B)(i, j, k)(...)``."""
    texts = read_texts(node.inputs, node.iterators)
    operators = ", ".join(map(str, node.combine))
    written = [view_text(v, texts, node.iterators) for v in node.outputs]
    out_view = _view("out_view", node.outputs, kept_iterators(node), written)
    in_view = _view("in_view", node.inputs, node.iterators, texts)
    return f"{out_view} . md_hom(f, ({operators})) . {in_view}"


def kept_iterators(node: MdHom) -> tuple[str, ...]:
    """Return the iterators of the dimensions that are kept."""
    pairs = zip(node.iterators, node.combine, strict=True)
    combined = (Order.POINTWISE, Order.SERIAL)
    return tuple(name for name, operator in pairs if operator.order not in combined)


def _view(word: str, views: Sequence[View], iterators: Sequence[str], texts: Sequence[str]) -> str:
    buffers = ", ".join(dict.fromkeys(v.buffer for v in views))
    return f"{word}({buffers})({', '.join(iterators)})({', '.join(texts)})"


def md_hom_parts(node: MdHom) -> Iterator[tuple[str, str]]:
    """Yield what the notation leaves out, each with a label: ranges, scalar function, start, guard, ..."""
    texts = read_texts(node.inputs, node.iterators)
    if node.iterators:
        yield "over", ", ".join(_ranges(node))
    for term in node.terms:
        yield "f", expression_text(term, texts, node.iterators)
    for start in node.initial:
        if start is not None:
            yield "from", expression_text(start, texts, node.iterators)
    results = [f"{view_text(v, texts, node.iterators)}" for v in node.outputs]
    for finish in node.finish:
        if finish is not None:
            yield "then", expression_text(finish, [*texts, *results], node.iterators)
    if node.guard is not None:
        yield "where", integer_text(node.guard)
    if node.written is not None:
        yield "written", integer_text(node.written)


def _ranges(node: MdHom | Nest) -> Iterator[str]:
    pairs = zip(node.iterators, node.extents, strict=True)
    return (f"{name} < {integer_text(extent)}" for name, extent in pairs)


def scalar_function_text(node: MdHom) -> str:
    """Return the scalar function in terms of what the views read; of several outputs a tuple."""
    texts = read_texts(node.inputs, node.iterators)
    functions = [expression_text(t, texts, node.iterators) for t in node.terms]
    return functions[0] if len(functions) == 1 else f"({', '.join(functions)})"


@dataclass(frozen=True)
class _Texts:
    views: tuple[View, ...]
    iterators: tuple[str, ...]

    def of(self, position: int) -> str:
        return view_text(self.views[position], self._needed(self.views[position]), self.iterators)

    def _needed(self, view: View) -> list[str]:
        """Return the texts of the views that computed indices read; of the others nothing."""
        parts = (p for i in view.indices if not isinstance(i, Index) for p in walk(i))
        needed = {p.position for p in parts if isinstance(p, Read)}
        return [self.of(k) if k in needed else "" for k in range(len(self.views))]


def read_texts(views: tuple[View, ...], iterators: tuple[str, ...]) -> list[str]:
    """Return the text of each view: ``A[i][k]``, ``h[bin[i]]``."""
    texts = _Texts(views, iterators)
    return [texts.of(k) for k in range(len(views))]


def view_text(view: View, reads: Sequence[str], iterators: Sequence[str]) -> str:
    """Return an element: ``A[i + 1][k]``; ``reads``: the texts that computed indices speak of."""
    return view.buffer + "".join(f"[{index_text(i, reads, iterators)}]" for i in view.indices)


def index_text(index: Index | Expression, reads: Sequence[str], iterators: Sequence[str]) -> str:
    """Return an index of a view: ``2 * i + j - 1``."""
    if isinstance(index, Index):
        return integer_text(index_expression(index, iterators))
    return expression_text(index, reads, iterators)


def index_expression(index: Index, iterators: Sequence[str]) -> IntExpression:
    """Return an affine index as an integer expression over iterators and parameters."""
    pairs = zip(index.coefficients, iterators, strict=True)
    terms: list[tuple[int, IntExpression]] = [(c, Name(name)) for c, name in pairs if c]
    return sum_of([*terms, (1, index.offset)])


def nest_lines(node: Nest) -> Iterator[str]:
    """Yield a nest: an md_hom of ``++`` whose scalar function is a program."""
    operators = ", ".join("++" for _ in node.iterators)
    yield f"{node.name} : md_hom(f, ({operators}))"
    if node.iterators:
        yield f"  over    {', '.join(_ranges(node))}"
    yield from (f"  private {buffer_text(b)}" for b in node.private)
    yield "  f"
    yield from (f"    {line}" for line in tree_lines(node.body))
    yield "  with"
    yield from (f"    {assignment_text(a)}" for a in node.assignments)


def assignment_text(assignment: Assignment) -> str:
    """Return ``S1(i, j): C[i][j] = C[i][j] * beta if m[i] > 0``."""
    reads = read_texts(assignment.reads, assignment.iterators)
    target = view_text(assignment.target, reads, assignment.iterators)
    value = expression_text(assignment.value, reads, assignment.iterators)
    head = f"{assignment.name}({', '.join(assignment.iterators)}): {target} = {value}"
    if assignment.condition is None:
        return head
    return f"{head} if {expression_text(assignment.condition, reads, assignment.iterators)}"
