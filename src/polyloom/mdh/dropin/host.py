"""Host programs in C: what a drop-in calls in place of a SCoP.

A function per host program: its arrays go to the device, host loops run as C loops, each MdHom or Nest is a
launch of its kernels, and what was written comes back. The C is C11 over ``native/polyloom_opencl.h``, or C++
over ``native/polyloom_cuda.h``: they differ in how kernels are started (``Kernels``).

Not in the papers: md_poly stops at the kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyloom.ir.host import Buffer, Copy, HostNode, HostProgram, MdHom, Nest, Role
from polyloom.mdh.dropin.kernels import Kernels, quoted
from polyloom.mdh.dropin.signature import C_TYPES, TAKEN, Signature, qualifier
from polyloom.mdh.lowering.launch import (
    Argument,
    BufferArgument,
    IntegerArgument,
    Kernel,
    Launch,
    LocalArgument,
    Temporary,
    TemporaryArgument,
)
from polyloom.mdh.print.names import c_names
from polyloom.mdh.print.values import integer_c
from polyloom.polyhedra.loops.tree import Branch, IntExpression, Loop, names_in, nodes_in

Launches = Callable[[MdHom | Nest], Launch]


@dataclass(frozen=True, eq=False)
class Variant:
    """A host program and its launches where the parameters have these values (none: for all values)."""

    values: Mapping[str, int]
    program: HostProgram
    launches: Launches


def host_function(call: Signature, variants: Sequence[Variant], table: Kernels) -> str:
    """Return the definition of the function; kernels that it launches are put into ``table``.

    The first variant whose values are those of the call runs; the last one must be for all values.
    """
    names = c_names(_names(call, variants), TAKEN)
    head = call.typed("static POLYLOOM_APART void", f"{call.function}_on_device")
    lines = _entering(call, names, table)
    for number, variant in enumerate(variants):
        part = call.function.removeprefix("polyloom_") + ("_special" if variant.values else "")
        lines += _Body(variant, names, table, part).lines(first=number == 0)
    if len(variants) > 1:
        lines += ["  }"]
    lines += ["  polyloom_finish();"]
    lines += [f"  polyloom_leave(&{names[b.name]}_device);" for b in call.buffers]
    spoken = set(re.findall(r"\w+", "\n".join(lines)))
    unused = [f"  (void){names[name]};" for name in call.parameters if names[name] not in spoken]
    before = [f"{head} {{", f"  {table.opening}", *unused]
    return "\n".join([*before, *lines, "}", "", *_entry(call, variants[-1].program)])


def _entry(call: Signature, general: HostProgram) -> list[str]:
    """Return the function that is called: it runs the other one, unless something stands against it."""
    names, conditions = call.names, ["!polyloom_begin()"]
    if general.context is not None and names_in(general.context):
        conditions.insert(0, f"!({integer_c(general.context, names)})")
    arguments = ", ".join(names[name] for name in (*call.parameters, *(b.name for b in call.buffers)))
    return [
        f"{call.prototype} {{",
        f"  if ({' || '.join(conditions)})",
        "    return 0;",
        "  if (setjmp(polyloom.begun))",
        "    return 0;",
        f"  {call.function}_on_device({arguments});",
        "  return 1;",
        "}",
        "",
    ]


def _names(call: Signature, variants: Sequence[Variant]) -> Iterator[str]:
    """Yield every name of the function: those of the arguments first, which then are as in its prototype."""
    yield from call.parameters
    yield from (buffer.name for buffer in call.buffers)
    for variant in variants:
        yield from (buffer.name for buffer in variant.program.buffers)
        for node in nodes_in(variant.program.body):
            if isinstance(node, Loop):
                yield node.iterator


def _entering(call: Signature, names: Mapping[str, str], table: Kernels) -> list[str]:
    """Bring the arguments to the device, unless what is touched of two of them overlaps."""
    lines = []
    for buffer in call.buffers:
        name = names[buffer.name]
        host = f"(void *){name}" if qualifier(buffer) else name
        reads, writes = int(buffer.role is not Role.OUTPUT), int(buffer.role is not Role.INPUT)
        sizes = _bytes(buffer, names, table), *_touched(buffer, names, table)
        lines += [f"  struct polyloom_array {name}_device = polyloom_argument({quoted(buffer.name)}, {host},"]
        lines += [*(f"      {size}," for size in sizes), f"      {reads}, {writes});"]
    if call.buffers:
        arrays = ", ".join(f"&{names[b.name]}_device" for b in call.buffers)
        pointers = table.pointers.format(values=arrays)
        lines.append(f"  polyloom_enter({pointers}, {len(call.buffers)});")
    return lines


def _touched(array: Buffer, names: Mapping[str, str], table: Kernels) -> tuple[str, str]:
    """Return from which byte of a buffer to before which one the program touches it, in C."""
    if array.rows is None:
        return "0", _bytes(array, names, table)
    first, end = (replace(array, shape=(row, *array.shape[1:])) for row in array.rows)
    return _bytes(first, names, table), _bytes(end, names, table)


def _bytes(array: Buffer, names: Mapping[str, str], table: Kernels) -> str:
    """Return the number of bytes of a buffer in C."""
    size = f"sizeof({C_TYPES[array.type]})" if array.type in C_TYPES else str(array.type.size)
    if not array.shape:
        return size
    extents = ", ".join(integer_c(extent, names) for extent in array.shape)
    return f"polyloom_bytes({size}, {len(array.shape)}, {table.integers.format(values=extents)})"


@dataclass(frozen=True, eq=False)
class _Body:
    """Prints the nodes of one variant."""

    variant: Variant
    names: Mapping[str, str]
    table: Kernels
    part: str
    ready: dict[str, None] = field(default_factory=dict)
    """What comes before the first launch."""

    def lines(self, *, first: bool) -> list[str]:
        """Return the variant as statements, behind the question whether its values are given."""
        locals_ = [b for b in self.variant.program.buffers if b.role is Role.LOCAL]
        made = [self._local(self.names[b.name], b.name, _bytes(b, self.names, self.table)) for b in locals_]
        freed = [f"polyloom_release(&{self.names[b.name]}_device);" for b in locals_]
        steps = self._nodes(self.variant.program.body)
        body = [*self.ready, *made, *steps, *freed]
        values = self.variant.values
        if not values and first:
            return _indented(body)
        tests = " && ".join(f"{self.names[name]} == {value}" for name, value in values.items())
        opening = "" if first else "} else "
        head = f"  {opening}{f'if ({tests}) ' if tests else ''}{{"
        return [head, *_indented(_indented(body))]

    def _nodes(self, nodes: Iterable[HostNode]) -> list[str]:
        return [line for node in nodes for line in self._node(node)]

    def _node(self, node: HostNode) -> list[str]:
        match node:
            case Loop():
                return self._loop(node)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                lines = [f"if ({self._integer(condition)}) {{", *_indented(self._nodes(body))]
                if otherwise:
                    lines += ["} else {", *_indented(self._nodes(otherwise))]
                return [*lines, "}"]
            case Copy(source=source, target=target):
                return [f"polyloom_copy(&{self.names[source]}_device, &{self.names[target]}_device);"]
            case _:
                return self._launch(node.name, self.variant.launches(node))

    def _loop(self, loop: Loop[HostNode]) -> list[str]:
        name = self.names[loop.iterator]
        start, condition = self._integer(loop.start), self._integer(loop.condition)
        head = f"for (int64_t {name} = {start}; {condition}; {name} += {self._integer(loop.step)}) {{"
        return [head, *_indented(self._nodes(loop.body)), "}"]

    def _launch(self, name: str, launch: Launch) -> list[str]:
        """Print the kernels of one node; their temporaries are kept for the next launch."""
        temporaries = {t.name: f"{self.names.get(t.name, t.name)}_temporary" for t in launch.temporaries}
        lines = [f"{{ /* {name} */"]
        for temporary in launch.temporaries:
            lines += _indented(self._temporary(temporary, temporaries[temporary.name]))
        for kernel in launch.kernels:
            lines += _indented(self._kernel(kernel, temporaries))
        return [*lines, "}"]

    def _temporary(self, temporary: Temporary, name: str) -> list[str]:
        count = self.table.integers.format(values=self._integer(temporary.count))
        count = f"polyloom_bytes({temporary.type.size}, 1, {count})"
        declared = f"static struct polyloom_array {name}_device;"
        return [declared, f"polyloom_temporary(&{name}_device, {quoted(temporary.name)}, {count});"]

    def _local(self, name: str, said: str, count: str) -> str:
        return f"struct polyloom_array {name}_device = polyloom_local({quoted(said)}, {count});"

    def _kernel(self, kernel: Kernel, temporaries: Mapping[str, str]) -> tuple[str, ...]:
        arguments = [self._argument(argument, temporaries) for argument in kernel.arguments]
        items = [self._integer(size) for size in kernel.global_size]
        groups = None if kernel.local_size is None else [self._integer(size) for size in kernel.local_size]
        start = self.table.start(kernel, self.part, arguments, (items, groups))
        self.ready[start.ready] = None
        return start.lines

    def _argument(self, argument: Argument, temporaries: Mapping[str, str]) -> str:
        match argument:
            case BufferArgument(buffer=buffer):
                return f"{self.names[buffer]}_device"
            case TemporaryArgument(temporary=temporary):
                return f"{temporaries[temporary]}_device"
            case LocalArgument(bytes=value) | IntegerArgument(value=value):
                return self._integer(value)

    def _integer(self, expression: IntExpression) -> str:
        return integer_c(expression, self.names)


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
