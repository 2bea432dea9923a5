"""The code that sets the sizes of an instruction anew: before each call, or when an outer index changes.

Where a machine can set the length of an operand of one dimension alone, that is done; else the descriptor is
configured.
Not in the papers: dtg_codegen, Sec. 5, configures once, at the start.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.polyhedra.binding import project_out_parameters
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Name, Number, operation_count
from polyloom.wafer.pe_program.addresses import point_values
from polyloom.wafer.pe_program.tree import (
    Code,
    Configure,
    Cost,
    If,
    Node,
    OperandRef,
    Scope,
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
