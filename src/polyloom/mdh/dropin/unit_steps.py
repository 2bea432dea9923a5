"""Steps of which a function has a version for 1, as most calls have them: ``inc`` of ``x[i * inc]``.

    for (i = 0; i < n; i++) y[i * incy] += s * x[i * incx];    ->    incx == 1 && incy == 1: x[i], y[i]

Where sizes are open such arrays are rows of ``inc`` elements, of which one is used, and the C compiler makes
no loop of its own for 1: it does so of the source, where it sees a product.
"""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.ir.host import Buffer, HostProgram, Index, MdHom, Nest, Role, View
from polyloom.polyhedra.loops.tree import Name, Number, leaves_in


def unit_steps(program: HostProgram) -> tuple[str, ...]:
    """Return the parameters that are lengths of rows of the caller's, of which all use the first element."""
    views = list(_views(program))
    names = {parameter.name for parameter in program.parameters}
    found = (
        length.name
        for buffer in program.buffers
        for length in buffer.shape[-1:]
        if isinstance(length, Name) and _is_first_of_rows(buffer, views)
    )
    return tuple(name for name in dict.fromkeys(found) if name in names)


def _is_first_of_rows(buffer: Buffer, views: list[View]) -> bool:
    used = [view for view in views if view.buffer == buffer.name]
    is_given = buffer.role is not Role.LOCAL and len(buffer.shape) > 1
    return is_given and bool(used) and all(map(_stays_at_first, used))


def _stays_at_first(view: View) -> bool:
    last = view.indices[-1]
    return isinstance(last, Index) and not last.used and last.offset == Number(0)


def _views(program: HostProgram) -> Iterator[View]:
    for node in leaves_in(program.body):
        match node:
            case MdHom(inputs=inputs, outputs=outputs):
                yield from (*inputs, *outputs)
            case Nest(assignments=assignments):
                for assignment in assignments:
                    yield from (assignment.target, *assignment.reads)
            case _:
                pass
