"""Host programs as ``show --as mdh`` prints them: text, and a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from polyloom.ir.host import Copy, HostNode, HostProgram, MdHom, Nest, View
from polyloom.ir.text.host_programs import (
    assignment_text,
    index_text,
    kept_iterators,
    md_hom_parts,
    print_host,
    read_texts,
    scalar_function_text,
)
from polyloom.ir.text.integers import integer_text, loop_text, tree_lines
from polyloom.polyhedra.loops.tree import Branch, IntExpression, Loop, Number


def text(programs: Sequence[HostProgram]) -> str:
    """Return host programs in the paper's notation."""
    return "\n".join(print_host(program) for program in programs)


def document(programs: Sequence[HostProgram]) -> list[dict[str, Any]]:
    """Return the document of ``show --as mdh --json``. Source: docs/interface.md (JSON of show)."""
    return [entry for p in programs for entry in _nodes(p.body, ())]


def _nodes(nodes: Sequence[HostNode], around: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        match node:
            case Loop(body=body):
                yield from _nodes(body, (*around, loop_text(node)))
            case Branch(condition=condition, body=body, otherwise=otherwise):
                yield from _nodes(body, (*around, f"if {integer_text(condition)}"))
                yield from _nodes(otherwise, (*around, f"if not ({integer_text(condition)})"))
            case MdHom():
                yield {**_md_hom(node), "host_loops": list(around)}
            case Nest():
                yield {**_nest(node), "host_loops": list(around)}
            case Copy(source=source, target=target):
                yield {**_copy(source, target), "host_loops": list(around)}


def _md_hom(node: MdHom) -> dict[str, Any]:
    """Return an md_hom; a start, a finishing map and conditions only where there are any."""
    texts = read_texts(node.inputs, node.iterators)
    kept = kept_iterators(node)
    names = {"from": "initial", "then": "finish", "where": "guard", "written": "written"}
    return {
        "name": node.name,
        "ranges": [_number(e) for e in node.extents],
        "scalar_function": scalar_function_text(node),
        "combine_operators": [str(o) for o in node.combine],
        "input_view": [_view(v, node.iterators, node.iterators, texts) for v in node.inputs],
        "output_view": [_view(v, kept, node.iterators, texts) for v in node.outputs],
        **{names[label]: part for label, part in md_hom_parts(node) if label in names},
    }


def _nest(node: Nest) -> dict[str, Any]:
    """Return a nest: its scalar function is the text of a program."""
    body = [*tree_lines(node.body), *(assignment_text(a) for a in node.assignments)]
    private = {b.name for b in node.private}
    return {
        "name": node.name,
        "ranges": [_number(e) for e in node.extents],
        "scalar_function": "\n".join(body),
        "combine_operators": ["++"] * len(node.iterators),
        "input_view": [
            _view(v, a.iterators, a.iterators, read_texts(a.reads, a.iterators))
            for a in node.assignments
            for v in a.reads
            if v.buffer not in private
        ],
        "output_view": [
            _view(a.target, a.iterators, a.iterators, read_texts(a.reads, a.iterators))
            for a in node.assignments
            if a.target.buffer not in private
        ],
    }


def _copy(source: str, target: str) -> dict[str, Any]:
    return {
        "name": f"copy {source} to {target}",
        "ranges": [],
        "scalar_function": source,
        "combine_operators": [],
        "input_view": [{"buffer": source, "indices": [], "access": []}],
        "output_view": [{"buffer": target, "indices": [], "access": []}],
    }


def _number(extent: IntExpression) -> int | str:
    return extent.value if isinstance(extent, Number) else integer_text(extent)


def _view(
    view: View, indices: Sequence[str], iterators: Sequence[str], reads: Sequence[str]
) -> dict[str, Any]:
    return {
        "buffer": view.buffer,
        "indices": list(indices),
        "access": [index_text(i, reads, iterators) for i in view.indices],
    }
