"""The code that sets sizes and base addresses anew: before each call, or when an outer index changes.

Where a machine can set the length of an operand of one dimension alone, that is done; else the descriptor is
configured. A sparse stream starts a task for each pair: a base address that is the same for all of a chunk,
such as that of the filter's channel, is set when the chunk before it ends.
Not in the papers: dtg_codegen, Sec. 5, configures once, at the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyloom.polyhedra.binding import PE_PARAMETERS, bind, project_out_parameters
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.loops.generate import (
    CodeBuilder,
    IntExpression,
    Name,
    Number,
    names_in,
    operation_count,
    replace_name,
)
from polyloom.wafer.codegen.chains import chunk_extents
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.tasks import TaskKind
from polyloom.wafer.pe_program.addresses import address_operations, point_values
from polyloom.wafer.pe_program.tree import (
    Code,
    Configure,
    Cost,
    Element,
    If,
    Node,
    OperandRef,
    Scope,
    SetBase,
    SetInteger,
    SetLength,
)
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.simd.decision import SimdAnalysis, Sizing


def size_variables(
    builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder
) -> tuple[tuple[IntExpression, ...], Code]:
    """Return the sizes, those that vary as variables, and the code that computes these."""
    assert analysis.sizes is not None
    at = _when(analysis, code)
    sizes = project_out_parameters(analysis.sizes, _inner(analysis)).intersect_params(at.context)
    found: list[IntExpression] = []
    nodes: list[Node] = []
    for value in point_values(sizes, at):
        if isinstance(value, Number):
            found.append(value)
            continue
        name = builder.variable(f"{analysis.task.name}_size")
        nodes += [Cost(operations=operation_count(value)), SetInteger(name, value, declare=True)]
        found.append(Name(name))
    return tuple(found), tuple(nodes)


def declare_sized(
    builder: RoleBuilder, name: str, sizes: Sequence[IntExpression], strides: tuple[int, ...], comment: str
) -> tuple[OperandRef, Node]:
    """Declare an operand whose sizes are set anew; return it and what sets them."""
    if len(sizes) == 1 and builder.analysis.options.machine.set_length:
        operand = builder.memory_operand(name, (Number(1),), strides, comment)
        return operand, SetLength(operand, sizes[0], strides[0])
    operand = builder.operand(name, comment=comment)
    return operand, Configure(operand, tuple(sizes), strides)


def place_sizes(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder, nodes: Code) -> Code:
    """Return what sets the sizes before a call; nothing where that is done when an outer index changes."""
    if analysis.sizing is Sizing.CALL:
        return nodes
    at = _when(analysis, code)
    context = builder.role.context.align_params(at.context.get_space())
    condition = CodeBuilder(context, code.names).condition(at.context)
    body: Code = (Scope(nodes),)
    if condition is not None:
        body = (Cost(operations=operation_count(condition), branches=1), If(condition, nodes))
    assert analysis.task.stream is not None
    builder.setup.append(body)
    builder.at_chunk.setdefault(analysis.task.stream.name, []).append(body)
    return ()


def _when(analysis: SimdAnalysis, code: CodeBuilder) -> CodeBuilder:
    """Return the maker of expressions where the sizes are computed."""
    return CodeBuilder(project_out_parameters(code.context, _inner(analysis)), code.names)


def _inner(analysis: SimdAnalysis) -> tuple[str, ...]:
    return analysis.task.index_names[-1:] if analysis.sizing is Sizing.CHUNK else ()


_SHORTEST = 4
"""Elements of a chunk, zeros included, from which on it pays to do at its end what each pair would do."""


def set_at_chunks(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder, base: SetBase) -> bool:
    """Have a base address set at the end of each chunk, if it is the same for all elements of one.

    Only where instances run in every chunk: else it is no address of an element in some of them.
    """
    stream = analysis.task.stream
    if stream is None or not _may_be(builder, analysis, stream):
        return False
    outer = [code.names.get(name, name) for name in stream.index_names[:-1]]
    used = {name for subscript in base.element.subscripts for name in names_in(subscript)}
    if not used <= {*outer, *PE_PARAMETERS} or not _in_every_chunk(builder, code, stream):
        return False
    first = replace(base, element=_at_the_start(base.element, outer))
    builder.setup.append((first,))
    cost = Cost(operations=address_operations(base.element))
    builder.at_chunk.setdefault(stream.name, []).append((cost, base))
    return True


def _may_be(builder: RoleBuilder, analysis: SimdAnalysis, stream: Stream) -> bool:
    if analysis.task.kind is not TaskKind.SPARSE or stream.index_rank == 1:
        return False
    indices = stream.indices().intersect_params(builder.role.context)
    low, high = integer_bounds(indices)[-1]
    return high - low + 1 >= _SHORTEST


def _in_every_chunk(builder: RoleBuilder, code: CodeBuilder, stream: Stream) -> bool:
    """Whether the context of ``code`` has an element of every chunk that arrives."""
    rank, here = stream.index_rank, builder.role.context
    chunks = bind(chunk_extents(stream.carried, rank).intersect_params(here), stream.index_names[:-1])
    return bool(chunks.is_subset(project_out_parameters(code.context, stream.index_names[-1:])))


def _at_the_start(element: Element, counters: list[str]) -> Element:
    subscripts = list(element.subscripts)
    for name in counters:
        subscripts = [replace_name(s, name, Number(0)) for s in subscripts]
    return replace(element, subscripts=tuple(subscripts))
