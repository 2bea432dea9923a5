"""md_homs without their names: of those that differ in names alone, kernels are emitted and built once.

y[i] += W[i][j] * x[j]    and    z[a] += V[a][b] * u[b]    have the same source over b0, b1, b2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from polyloom.ir.host import Buffer, HostProgram, MdHom, View
from polyloom.mdh.lowering.launch import BufferArgument, Kernel, Launch

Emit = Callable[[MdHom, HostProgram], Launch]


def emit_canonical(node: MdHom, program: HostProgram, emit: Emit) -> Launch:
    """Return what ``emit`` makes of a node, under names that nodes of the same form share.

    The program has no parameters and no host iterators around the node; a node with a guard, which speaks of
    iterators by name, is emitted as it is.
    """
    if node.guard is not None or node.written is not None:
        return emit(node, program)
    views = (*node.inputs, *node.outputs)
    names = {name: f"b{k}" for k, name in enumerate(dict.fromkeys(v.buffer for v in views))}
    canonical = replace(
        node,
        name="node",
        iterators=tuple(f"i{k}" for k in range(len(node.iterators))),
        inputs=tuple(_view(v, names) for v in node.inputs),
        outputs=tuple(_view(v, names) for v in node.outputs),
    )
    buffers = tuple(_buffer(program.buffer(old), new) for old, new in names.items())
    launch = emit(
        canonical,
        HostProgram(name="program", parameters=(), buffers=buffers, body=(canonical,), strict=program.strict),
    )
    originals = {new: old for old, new in names.items()}
    return replace(launch, kernels=tuple(_kernel(k, originals) for k in launch.kernels))


def _view(view: View, names: Mapping[str, str]) -> View:
    return replace(view, buffer=names[view.buffer])


def _buffer(buffer: Buffer, name: str) -> Buffer:
    return replace(buffer, name=name)


def _kernel(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    arguments = tuple(
        BufferArgument(names[a.buffer]) if isinstance(a, BufferArgument) else a for a in kernel.arguments
    )
    return replace(kernel, arguments=arguments)
