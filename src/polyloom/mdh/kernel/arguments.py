"""The arguments of a kernel, and the C names of what an md_hom speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyloom.ir.host import Buffer, MdHom, used_buffers
from polyloom.mdh.kernel.launch import Argument, BufferArgument, IntegerArgument, TemporaryArgument
from polyloom.mdh.print.names import c_names
from polyloom.mdh.print.values import memory_type
from polyloom.mdh.schedule.addresses import Buffers, known, names_used
from polyloom.polyhedra.loops.tree import Name

LARGEST_INT = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Signature:
    """What a kernel is called with. ``names``: the C name of each buffer, parameter and iterator.

    ``temporaries``: those of ``buffers`` that live for the launch only. ``extra``: buffers beside those that
    the views name. ``defined``: names that the kernel itself gives a value. ``integer``: the type of indices.
    """

    hom: MdHom
    buffers: Buffers
    temporaries: frozenset[str]
    extra: tuple[str, ...]
    defined: tuple[str, ...]
    names: Mapping[str, str]
    integer: str

    @property
    def pointers(self) -> tuple[str, ...]:
        """The buffers that the kernel gets."""
        return tuple(dict.fromkeys((*used_buffers(self.hom), *self.extra)))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The parameters and host iterators that the kernel gets."""
        return tuple(n for n in names_used(self.hom, self.buffers) if n not in self.defined)

    def arguments(self) -> tuple[Argument, ...]:
        """Return what a launch passes."""
        pointers = [
            TemporaryArgument(b) if b in self.temporaries else BufferArgument(b) for b in self.pointers
        ]
        return (*pointers, *(IntegerArgument(Name(n)) for n in self.numbers))

    def declaration(self, name: str, items: int) -> str:
        """Return the kernel's head."""
        written = {view.buffer for view in self.hom.outputs} | set(self.extra)
        read = {view.buffer for view in self.hom.inputs} | set(self.extra)
        pointers = [self._pointer(self.buffers[b], b in written, b in read) for b in self.pointers]
        numbers = [f"const long {self.names[n]}" for n in self.numbers]
        arguments = (",\n" + " " * (len(name) + 6)).join([*pointers, *numbers])
        size = f"__attribute__((reqd_work_group_size({items}, 1, 1)))"
        return f"__kernel {size}\nvoid {name}({arguments})\n"

    def _pointer(self, buffer: Buffer, written: bool, read: bool) -> str:
        """Declare a pointer; LLVM 14 moves loads of ``restrict`` pointers over stores that change them."""
        const = "" if written else "const "
        restrict = "" if written and read else "restrict "
        return f"__global {const}{memory_type(buffer.type)} *{restrict}{self.names[buffer.name]}"


def signature_of(
    hom: MdHom,
    buffers: Buffers,
    temporaries: frozenset[str] = frozenset(),
    extra: tuple[str, ...] = (),
    defined: tuple[str, ...] = (),
) -> Signature:
    """Return the signature of a kernel that carries out ``hom``."""
    pointers = dict.fromkeys((*used_buffers(hom), *extra))
    wanted = (*pointers, *names_used(hom, buffers), *hom.iterators)
    names = c_names(wanted, taken=(kernel_name(hom),))
    sizes = [known(n) for b in pointers for n in buffers[b].shape] + [known(n) for n in hom.extents]
    integer = _integer_type(sizes, buffers, tuple(pointers))
    return Signature(
        hom=hom,
        buffers=buffers,
        temporaries=temporaries,
        extra=extra,
        defined=defined,
        names=names,
        integer=integer,
    )


def _integer_type(sizes: list[int | None], buffers: Buffers, pointers: tuple[str, ...]) -> str:
    """Return ``int`` where every element's place is known to fit."""
    if any(size is None for size in sizes):
        return "long"
    for name in pointers:
        count = 1
        for extent in buffers[name].shape:
            count *= known(extent) or 1
        if count > LARGEST_INT // 2:
            return "long"
    return "int" if all((size or 0) < LARGEST_INT // 2 for size in sizes) else "long"


def kernel_name(hom: MdHom) -> str:
    """Return the name of an md_hom's kernel."""
    return c_names((hom.name,))[hom.name]
