"""All rules over a program: `polyloom check`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from polyloom.csl import library
from polyloom.csl.comptime import Loader, deep_recursion, elaborate, run_layout
from polyloom.csl.lint import exports, memory, operations, queues, routes, running, tasks
from polyloom.csl.lint.subject import Subject
from polyloom.diagnostics import Diagnostic, PolyloomError


@dataclass(frozen=True)
class Rule:
    """A rule: the numbers of what it looks for, and a function that says what breaks it."""

    numbers: str
    look: Callable[[Subject], Iterator[Diagnostic]]


_LOOKS = (
    *(routes.configured_once, routes.memcpy_colors, routes.one_input, routes.routes_meet, routes.no_cycles),
    *(routes.switches, routes.counter_filters),
    *(tasks.bound_once, tasks.reserved_ids, tasks.parameters, tasks.control_is_heard),
    *(queues.initialised_once, queues.initialised_before_use, queues.memcpy_queues),
    *(exports.names_match, exports.pointers, exports.stream_is_unblocked),
    *(operations.kinds, operations.options, operations.scalars, operations.suffixes),
    *(operations.array_arguments, operations.indices, operations.extents),
    *(operations.registers, operations.maps, operations.narrow_loops),
    *(memory.ranges, memory.elements, memory.fifos, memory.memcpy_registers, memory.room),
    *(memory.many_programs, memory.vectors, memory.banks),
    *(running.held_up, running.map_registers, running.wavelet_vectors),
)

RULES = tuple(Rule((look.__doc__ or "").partition(":")[0], look) for look in _LOOKS)


def check(
    path: Path,
    arch: str,
    parameters: Mapping[str, int] | None = None,
    colors: Mapping[str, int] | None = None,
    import_paths: tuple[Path, ...] = (),
) -> list[Diagnostic]:
    """Return what is to be said of a program whose layout is the file ``path``: errors, warnings, remarks.

    What stops the layout or a program comes alone.
    """
    loader = Loader(library.source, import_paths)
    try:
        layout = run_layout(loader, path, arch, parameters or {}, colors)
        rectangle = (layout.width, layout.height)
        programs = tuple(
            elaborate(loader, tile.file, dict(tile.parameters), arch, rectangle) for tile in layout.programs
        )
        with deep_recursion():
            return examine(Subject(layout, programs))
    except PolyloomError as fault:
        return list(fault.diagnostics)


_ORDER = {"error": 0, "warning": 1, "remark": 2}


def examine(subject: Subject) -> list[Diagnostic]:
    """Return what the rules find, errors first; what is found at one place for many PEs is said once."""
    found: dict[tuple[str, str], Diagnostic] = {}
    counts: dict[tuple[str, str], int] = {}
    given = [*subject.layout.warnings, *(w for p in subject.programs for w in p.warnings)]
    for diagnostic in [*given, *(d for rule in RULES for d in rule.look(subject))]:
        key = (diagnostic.code, str(diagnostic.span))
        found.setdefault(key, diagnostic)
        counts[key] = counts.get(key, 0) + 1
    repeated = (_counted(d, counts[key]) for key, d in found.items())
    return sorted(repeated, key=lambda d: _ORDER[d.severity.value])


def _counted(diagnostic: Diagnostic, count: int) -> Diagnostic:
    if count == 1:
        return diagnostic
    more = f"the same holds {count - 1} time{'s' if count > 2 else ''} more"
    return replace(diagnostic, notes=(*diagnostic.notes, more))
