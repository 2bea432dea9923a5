"""What a host program must know: which bytes lie where before the start, what each port is fed and gives.

Everything is stated twice: as a relation in isl notation, and as Python expressions (integers, ``//``,
``min``, ``max``) of the PE's coordinates, the port's position and the index, which C spells almost the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS, bind, bind_domain, bind_range, parametric_point
from polyloom.polyhedra.loops.generate import (
    CodeBuilder,
    IntExpression,
    Name,
    Number,
    Operation,
    replace_name,
    sum_of,
)
from polyloom.wafer.dataflow.local_arrays import LocalArray, resident_tensors
from polyloom.wafer.dataflow.streams import index_names
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.pe_program.addresses import point_values
from polyloom.wafer.program.port_groups import PortGroup
from polyloom.wafer.program.wafer_program import RoleProgram, WaferProgram

_DIM = isl.dim_type
PORT = "port"
"""The name of a port's position on its side: x on the north and south, y on the west and east."""


def manifest(program: WaferProgram) -> dict[str, Any]:
    """Return the description as a JSON document (plain dicts, lists, strings and numbers)."""
    analysis = program.analysis
    return {
        "program": analysis.program.name,
        "machine": program.machine.name,
        "size": [analysis.border.given.grid.width, analysis.border.given.grid.height],
        "files": sorted(program.files),
        "colors": {str(color): what for color, what in program.routing.colors},
        "roles": [_role(program, role) for role in program.roles],
        "zeros": [entry for role in program.roles for entry in _zeros(program, role)],
        "residents": [entry for role in program.roles for entry in _residents(program, role)],
        "inputs": [_port(program, group) for group in program.inputs],
        "outputs": [_port(program, group) for group in program.outputs],
        "resident_outputs": list(_resident_outputs(program)),
        "wavelets": {
            "dense": "one element a wavelet, a 16-bit one in the low half, in lexicographic order of "
            "the index; where a port has a block, two, the first in the low half, and no wavelet has "
            "elements of two blocks of so many elements",
            "sparse": "index << 16 | element, zeros left out, a control wavelet after each chunk: after each "
            "tuple of outer indices in lexicographic order, also after an empty one",
        },
    }


def python_text(expression: IntExpression, outer: int = 0) -> str:
    """Return an integer expression in Python."""
    match expression:
        case Number(value=value):
            return f"({value})" if value < 0 and outer else str(value)
        case Name(name=name):
            return name
        case Operation(operator="floor" | "/", operands=(a, b)):
            return f"({python_text(a, 1)} // {python_text(b, 9)})"
        case Operation(operator=("min" | "max") as function, operands=operands):
            return f"{function}({', '.join(python_text(o) for o in operands)})"
        case Operation(operator="?", operands=(c, a, b)):
            return f"({python_text(a, 1)} if {python_text(c, 1)} else {python_text(b, 1)})"
        case Operation(operator="-", operands=(a,)):
            return f"(-{python_text(a, 9)})"
        case Operation(operator=operator, operands=operands):
            text = f" {operator} ".join(python_text(o, 9) for o in operands)
            return f"({text})" if outer else text


def _role(program: WaferProgram, role: RoleProgram) -> dict[str, Any]:
    return {
        "name": role.code.name,
        "pes": str(role.pes),
        "where": _where(bind(role.pes, PE_PARAMETERS)),
        "memory_bytes": role.memory_bytes,
        "memory": [{"name": f.name, "offset": f.offset, "bytes": f.bytes} for f in role.memory],
        "input_queues": list(role.code.inputs),
        "output_queues": list(role.code.outputs),
    }


def _residents(program: WaferProgram, role: RoleProgram) -> Iterator[dict[str, Any]]:
    analysis = program.analysis
    for name in resident_tensors(analysis.program, analysis.graph):
        array = analysis.arrays.get(name)
        if array is not None and role.has(array.name):
            yield _placed_array(role, array)


def _zeros(program: WaferProgram, role: RoleProgram) -> Iterator[dict[str, Any]]:
    """Arrays that hold zeros before the start, but for the box of their elements: loaded after residents."""
    for array in program.analysis.arrays.values():
        if array.zero_padding and role.has(array.name):
            yield {
                "role": role.code.name,
                "array": array.name,
                "type": array.type.value,
                "offset": role.offset(array.name),
                "extents": list(array.shape),
                "but": [[first, first + n] for first, n in zip(array.corner, array.box_shape, strict=True)],
            }


def _resident_outputs(program: WaferProgram) -> Iterator[dict[str, Any]]:
    for name in program.analysis.program.outputs:
        result = program.analysis.graph.result(name)
        array = program.analysis.arrays[name]
        for role in program.roles:
            if not result.leave and role.has(array.name):
                held = result.owners.intersect_domain(role.role.pes).apply_domain(role.to_given())
                yield {**_placed_array(role, array), "held": str(held), "owned": _owned(held)}


def _owned(held: isl.Map) -> str:
    """Return for which PEs and elements, whose coordinates are ``e0``, ``e1``, ..., a PE has the result."""
    names = tuple(f"e{k}" for k in range(held.dim(_DIM.out)))
    return _where(bind(bind_domain(held, PE_PARAMETERS), names))


def _placed_array(role: RoleProgram, array: LocalArray) -> dict[str, Any]:
    """Where an array lies, and the element of the tensor in its cell [i0, i1, ...]."""
    code = CodeBuilder(role.role.context, {})
    subscripts = []
    for k, low in enumerate(array.low):
        offset = _in_given(code.affine(array.offset.get_at(k), ()), role)
        sign, place = (-1, array.extent[k] - 1) if k in array.reversed else (1, 0)
        cell = Name(f"i{array.dimensions.index(k)}")
        subscripts.append(python_text(sum_of([(1, offset), (sign, cell), (1, Number(place - low))])))
    inside = isl.Map.from_multi_aff(array.map).reverse()
    return {
        "tensor": array.tensor,
        "role": role.code.name,
        "array": array.name,
        "type": array.type.value,
        "offset": role.offset(array.name),
        "extents": list(array.shape),
        "element": subscripts,
        "relation": str(inside),
    }


def _in_given(expression: IntExpression, role: RoleProgram) -> IntExpression:
    """Write a function of a PE's coordinates in its own rectangle with those in the given one."""
    for name, first in zip(PE_PARAMETERS, role.origin, strict=True):
        if first:
            there = sum_of([(1, Name(name)), (1, Number(-first))])
            expression = replace_name(expression, name, there)
    return expression


def _port(program: WaferProgram, group: PortGroup) -> dict[str, Any]:
    """The ports of one side: which there are, and which element has which index."""
    tensor, side, ports = group.tensor, group.side, group.ports
    color = bind_domain(group.color, (PORT,))
    rank = ports.get_space().range().unwrap().dim(_DIM.out)
    names = index_names(rank)
    element = _element_at(side, ports, names)
    code = CodeBuilder(element.params(), {})
    extents = [_extent(side, ports, k) for k in range(rank)]
    ir_tensor = program.analysis.program.buffer(tensor)
    return {
        "tensor": tensor,
        "type": ir_tensor.type.value,
        "side": side.value,
        "ports": str(ports.range_factor_domain().range().coalesce()),
        "sparse": group.sparse,
        "block": group.block,
        "index": list(names),
        "extents": extents,
        "where": _where(element),
        "element": [python_text(value) for value in point_values(element, code)],
        "relation": str(ports),
        "color": python_text(CodeBuilder(color.params(), {}).value(color.dim_max(0))),
    }


def _external(side: Side, ports: isl.Map) -> isl.Set:
    """Return ``[port] -> { PE[x, y] }``: the external PE at a position of the side."""
    fixed = 0 if side.line == "PE_X" else 1
    at = ports.range_factor_domain().range()
    here = parametric_point("PE", (PORT, "other") if fixed == 0 else ("other", PORT))
    bound = at.intersect(here)
    return bound.project_out(_DIM.param, bound.find_dim_by_name(_DIM.param, "other"), 1)


def _at_port(side: Side, ports: isl.Map) -> isl.Map:
    """Return ``[port] -> { x[i] -> index[k] }``."""
    rank = ports.get_space().range().unwrap().dim(_DIM.out)
    index = isl.Set(f"{{ index[{', '.join(f'k{n}' for n in range(rank))}] }}")
    allowed = isl.Map.from_domain_and_range(_external(side, ports), index).wrap()
    return ports.intersect_range(allowed).range_factor_range()


def _element_at(side: Side, ports: isl.Map, names: tuple[str, ...]) -> isl.Set:
    """Return ``[port, index_0, index] -> { x[i] }``."""
    return bind_range(_at_port(side, ports), names)


def _extent(side: Side, ports: isl.Map, k: int) -> str:
    """Return one more than the largest value of an index dimension at a port."""
    indices = _at_port(side, ports).range()
    largest = indices.dim_max(k)
    code = CodeBuilder(indices.params(), {})
    return python_text(sum_of([(1, code.value(largest)), (1, Number(1))]))


def _where(points: isl.Set) -> str:
    """Return for which parameters (position and index, or coordinates) there are points, as a condition."""
    possible = points.params()
    condition = CodeBuilder(isl.Set.universe(possible.get_space()), {}).condition(possible.coalesce())
    return "True" if condition is None else python_text(condition)
