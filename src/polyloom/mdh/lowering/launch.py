"""What becomes of one node of a host program: kernels, and how they are launched.

Every integer expression here is over the parameters and the host iterators around the node; whoever launches
(``runtime``, or C of ``dropin``) evaluates it for each launch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from polyloom.ir.types import ElementType
from polyloom.mdh.print.kernel_source import KernelLanguage
from polyloom.polyhedra.loops.tree import IntExpression


@dataclass(frozen=True)
class BufferArgument:
    """A ``__global`` pointer to a buffer of the host program; scalars are buffers of one element."""

    buffer: str


@dataclass(frozen=True)
class TemporaryArgument:
    """A ``__global`` pointer to a temporary of the launch."""

    temporary: str


@dataclass(frozen=True)
class IntegerArgument:
    """An integer by value, ``long`` or ``int``; a launch whose value does not fit is refused."""

    value: IntExpression
    type: ElementType = ElementType.INT64


@dataclass(frozen=True)
class LocalArgument:
    """A ``__local`` pointer to that many bytes."""

    bytes: IntExpression


Argument = BufferArgument | TemporaryArgument | IntegerArgument | LocalArgument


@dataclass(frozen=True)
class Temporary:
    """Device memory that lives for one launch: ``count`` elements, not initialised."""

    name: str
    type: ElementType
    count: IntExpression


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel and its launch.

    ``source``: a whole program of OpenCL C or CUDA C that holds the kernel ``name``; kernels with equal
    source and options are built once. ``global_size``: 1 to 3 dimensions; nothing is launched where one of
    them is 0 or less. ``local_size``: of the same length; None leaves it to the driver. ``local_bytes``: what
    ``__local`` arrays inside the kernel take. ``options``: of the build, beside those of the device.
    """

    source: str = field(repr=False)
    name: str
    arguments: tuple[Argument, ...]
    global_size: tuple[IntExpression, ...]
    local_size: tuple[IntExpression, ...] | None = None
    local_bytes: int = 0
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launch:
    """What runs in place of an MdHom or a Nest: kernels one after another, sharing temporaries."""

    kernels: tuple[Kernel, ...]
    temporaries: tuple[Temporary, ...] = ()


def uncontracted(launch: Launch, language: KernelLanguage) -> Launch:
    """Return the kernels for which no product and sum become one operation with one rounding."""
    before, options = language.uncontracted, language.uncontracted_options
    kernels = (replace(k, source=before + k.source, options=(*k.options, *options)) for k in launch.kernels)
    return replace(launch, kernels=tuple(kernels))
