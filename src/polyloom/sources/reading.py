"""How a source is to be read, and what comes of it: tensor programs, host programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from polyloom.diagnostics import Diagnostic, Source
from polyloom.ir.host import HostProgram
from polyloom.ir.program import Program
from polyloom.ir.verification.references import Reference
from polyloom.scop.model import Scop

if TYPE_CHECKING:
    from polyloom.frontends.graph.imported import Imported

Shapes = Mapping[str, tuple[int, ...]]


class Structures(Enum):
    """What arrays of structures become in a host program."""

    MEMBERS = "members"
    """An array for each member, which the caller gives."""
    NUMBERS = "numbers"
    """An array of all their numbers, as they lie in memory, where the members in use have one type."""
    NUMBERS_OF_TYPES = "numbers of types"
    """Also where they have several: an array for each of these over the same memory."""


@dataclass(frozen=True)
class Reading:
    """How a source is to be read.

    ``node``: of LAIR; ``function``: of C, or a signature of a SavedModel. ``defines``: LAIR's parameters, C's
    macros, or sizes of a model. ``include`` and ``preprocessor``: as ``-I`` and ``--cpp``. ``reductions``:
    ``detect``, ``stated`` or ``ignore``. ``fp``: ``reassociate`` or ``strict``, of C alone. ``parameters``:
    values of the integer arguments of a C function, where a tensor program is wanted. ``shapes``: of arrays
    that are given for inputs, taken where a model leaves them open. ``examples``: tensors with which a module
    in memory is traced. ``schedule``: of C, a schedule tree in isl's text, in place of ours. ``unmarked``: of
    a function of C that as a whole cannot be computed, take the loops that can. ``structures``: of C.
    """

    node: str | None = None
    function: str | None = None
    defines: Mapping[str, str] = field(default_factory=dict)
    include: Sequence[Path] = ()
    preprocessor: str | None = None
    reductions: str = "detect"
    fp: str = "reassociate"
    parameters: Mapping[str, int] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=dict)
    examples: Sequence[object] = ()
    schedule: Source | None = None
    unmarked: bool = False
    structures: Structures = Structures.MEMBERS


@dataclass(frozen=True)
class Loaded:
    """A program, and what the front end remarked on it; ``model``: the model that it was.

    ``reference``: what the results of a model, or of a C function with the values of its parameters, are
    compared with.
    """

    program: Program
    warnings: tuple[Diagnostic, ...]
    model: Imported | None = None
    reference: Reference | None = None


@dataclass(frozen=True, eq=False)
class LoadedHost:
    """A host program, the SCoP that it was (None for a layer), and what there is to remark on it.

    ``reference``: what its results are compared with; None: the evaluator's.
    """

    program: HostProgram
    scop: Scop | None
    remarks: tuple[Diagnostic, ...]
    reference: Reference | None = None
