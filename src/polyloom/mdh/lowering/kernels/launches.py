"""The tree of a node as kernels: what runs in place of the node, one launch after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from polyloom.ir.host import Buffer
from polyloom.ir.naming import Names
from polyloom.mdh.lowering.kernels.items import Share, shares
from polyloom.mdh.lowering.kernels.loads import loads_once, numbered, points_in_a_row
from polyloom.mdh.lowering.kernels.pieces import Piece, pieces
from polyloom.mdh.lowering.launch import (
    Argument,
    BufferArgument,
    IntegerArgument,
    Kernel,
    Launch,
    Temporary,
    TemporaryArgument,
)
from polyloom.mdh.print.dialect import value_bytes
from polyloom.mdh.print.kernel_source import (
    OPENCL_KERNELS,
    KernelLanguage,
    KernelTree,
    kernel_name,
    kernel_source,
)
from polyloom.mdh.tree.distinct import distinct
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    For,
    Function,
    Load,
    Parameter,
    Space,
    Statement,
    Store,
)
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.rewrite import (
    declared_in,
    integers_used,
    loads_of,
    renamed_array,
    walk,
    with_blocks,
)
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, names_in, product_of


@dataclass(frozen=True, kw_only=True)
class KernelMaker:
    """Makes kernels for a device with so many bytes of ``local_memory``.

    ``buffers``: of the program. ``narrow``: whether integers of the code fit into 32 bits.
    ``streamed``: results that may bypass the caches. ``points``: what is done with parallel loops before
    groups carry them out.
    """

    name: str
    buffers: Mapping[str, Buffer]
    local_memory: int
    narrow: bool = False
    streamed: frozenset[str] = frozenset()
    language: KernelLanguage = OPENCL_KERNELS
    points: Callable[[For, Names], For] = lambda loop, names: loop

    def launch(self, code: Code) -> Launch:
        """Return the kernels of a node."""
        names = Names({*self.buffers, *declared_in(code), *integers_used(code), self.name})
        found = pieces(distinct(names, code), names.of(("alone",), "alone"))
        outside: set[str] = set()
        made = [_Making(self, names, outside).kernel(piece, self._called(k)) for k, piece in enumerate(found)]
        shared = {array.name: array for piece in found for array in piece.shared}
        own = [_temporary(array, array.shape) for array in shared.values()]
        return Launch(tuple(k for k, _ in made), (*own, *(t for _, more in made for t in more)))

    def _called(self, k: int) -> str:
        return f"{self.name}_{k + 1}" if k else self.name


def _temporary(array: Array, shape: Iterable[IntExpression]) -> Temporary:
    return Temporary(array.name, array.type, product_of(tuple(shape)))


@dataclass
class _Making:
    """A kernel that is being made, and the arrays that turned up in it; ``taken``: names of temporaries."""

    maker: KernelMaker
    names: Names
    taken: set[str]
    of_group: dict[str, Array] = field(default_factory=dict)
    outside: dict[str, Array] = field(default_factory=dict)
    """Arrays that groups have in memory of all, each its own part."""

    def kernel(self, piece: Piece, name: str) -> tuple[Kernel, tuple[Temporary, ...]]:
        """Return the kernel of a piece, with the memory that it alone needs."""
        share = shares(self.maker.points(piece.loop, self.names), self.names)
        body = points_in_a_row(self._without_arrays(share.code, share))
        shared = {array.name: array for array in piece.shared}
        parameters = self._parameters(body, shared, share)
        integers = self._integers(body, parameters) - {share.group, share.item}
        function = final(
            Function(
                name=name,
                parameters=parameters,
                integers=(*sorted(integers), share.group, share.item),
                body=(*self.of_group.values(), *body),
                streamed=self.maker.streamed,
            )
        )
        arrays = tuple(self.of_group.values())
        memory = {*(p.name for p in parameters), *self.of_group}
        own = Names({*self.names.taken, *declared_in(function.body)})
        function = replace(function, body=loads_once(numbered(own), memory, function.body[len(arrays) :]))
        tree = KernelTree(
            function=function,
            arrays=arrays,
            items=share.items,
            narrow=self.maker.narrow,
        )
        temporaries = {**shared, **self.outside}
        arguments: list[Argument] = [
            TemporaryArgument(p.name) if p.name in temporaries else BufferArgument(p.name) for p in parameters
        ]
        arguments += [IntegerArgument(Name(n)) for n in sorted(integers)]
        kernel = Kernel(
            source=kernel_source(tree, self.maker.language),
            name=kernel_name(name, self.maker.language),
            arguments=tuple(arguments),
            global_size=(product_of((share.groups, Number(share.items))),),
            local_size=(Number(share.items),),
        )
        return kernel, tuple(_temporary(a, (share.groups, *a.shape)) for a in self.outside.values())

    def _without_arrays(self, code: Code, share: Share) -> Code:
        """Take the arrays of a group out of the code, in which they are declared."""
        found: list[Statement] = []
        for at, statement in enumerate(code):
            if isinstance(statement, Array) and statement.space is Space.GROUP:
                rest = self._placed(statement, code[at + 1 :], share)
                return (*found, *self._without_arrays(rest, share))
            found.append(with_blocks(statement, lambda block: self._without_arrays(block, share)))
        return tuple(found)

    def _placed(self, array: Array, code: Code, share: Share) -> Code:
        """Give an array of the group a place; return the code that uses it."""
        size = bytes_of(array)
        used = sum(bytes_of(a) or 0 for a in self.of_group.values())
        known = self.of_group.get(array.name)
        if known == array:
            return code
        name = array.name
        if known is not None or name in self.taken:
            name = self.names.of((object(),), name)
            code = renamed_array(code, array.name, Load(name))
        own = replace(array, name=name, lanes=False, totals=None)
        if size is not None and used + size <= self.maker.local_memory:
            self.of_group[name] = own
            return code
        self.outside[name] = own
        self.taken.add(name)
        return renamed_array(code, name, Load(name, (Name(share.group),)))

    def _parameters(self, body: Code, shared: Mapping[str, Array], share: Share) -> tuple[Parameter, ...]:
        known: dict[str, Buffer | Array] = {**self.maker.buffers, **shared, **self.outside}
        stores = {s.array for s in walk(body) if isinstance(s, Store)}
        loads = {load.array for s in walk(body) for load in loads_of(s)}
        order = dict.fromkeys(n for s in walk(body) for n in _arrays_of(s) if n in known)
        found = []
        for name in order:
            shape = known[name].shape
            shape = (share.groups, *shape) if name in self.outside else shape
            found.append(
                Parameter(
                    name=name,
                    type=known[name].type,
                    shape=shape,
                    constant=name not in stores,
                    alone=not (name in stores and name in loads),
                )
            )
        return tuple(found)

    def _integers(self, body: Code, parameters: tuple[Parameter, ...]) -> frozenset[str]:
        """Return the integers that a kernel needs, also in the shapes of its arrays."""
        shapes = {n for p in parameters for extent in p.shape[1:] for n in names_in(extent)}
        return integers_used(body) | shapes


def _arrays_of(statement: Statement) -> Iterable[str]:
    if isinstance(statement, Store):
        yield statement.array
    yield from (load.array for load in loads_of(statement))


def bytes_of(array: Array) -> int | None:
    """Return the bytes of an array; None where they are not known."""
    extents = [n.value for n in array.shape if isinstance(n, Number)]
    size = array.type.size if array.packed else max(value_bytes(array.type), array.type.size)
    return prod(extents) * size if len(extents) == len(array.shape) else None
