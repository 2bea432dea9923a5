"""A layout and the files that it names, compiled: C and memory of each program, routes of every PE."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from polyloom.csl import comptime, library, types, values
from polyloom.csl.compiled import Compiled, DebugBuffer, Exported, Symbol, Unit
from polyloom.csl.comptime import Layout, Loader, Program, TileProgram
from polyloom.csl.lowering.program import PeProgram, lower_program
from polyloom.csl.overview import color_names, overview
from polyloom.diagnostics import Diagnostic, PolyloomError, Span, error
from polyloom.wafer.simulator.csl_fabric import ColorRoute, Direction, Filter, PopMode


def compile_layout(
    path: Path,
    arch: str,
    parameters: Mapping[str, int] | None = None,
    colors: Mapping[str, int] | None = None,
    import_paths: tuple[Path, ...] = (),
    *,
    poison: bool = False,
) -> Compiled:
    """Compile a program for ``wse2`` or ``wse3``.

    ``parameters`` and ``colors`` are those of the command line; ``poison`` as for ``lower_program``.
    Errors: diagnostics of every stage.
    """
    loader = Loader(library.source, import_paths)
    layout = comptime.run_layout(loader, path, arch, parameters or {}, colors)
    rectangle = layout.width, layout.height
    units, programs = [], []
    for number, tile in enumerate(layout.programs):
        program = comptime.elaborate(loader, tile.file, dict(tile.parameters), arch, rectangle)
        programs.append(program)
        units.append(_unit(lower_program(program, f"unit_{number}", poison=poison), program, tile))
    return Compiled(
        arch,
        layout.width,
        layout.height,
        tuple(units),
        dict(layout.tiles),
        _routes(layout, programs),
        tuple(_exported(export) for export in layout.exports),
        color_names(programs),
        loader.texts,
    )


def faults(
    path: Path,
    arch: str,
    parameters: Mapping[str, int] | None = None,
    colors: Mapping[str, int] | None = None,
    import_paths: tuple[Path, ...] = (),
) -> list[Diagnostic]:
    """Return what compiling a program says against it, nothing if it compiles."""
    try:
        compile_layout(path, arch, parameters, colors, import_paths)
    except PolyloomError as found:
        return list(found.diagnostics)
    return []


def _exported(export: comptime.Export) -> Exported:
    kind = export.type
    if isinstance(kind, types.Function):
        return Exported(export.name, None, parameters=tuple(map(str, kind.parameters)))
    element = kind.target if isinstance(kind, types.Pointer) else kind
    return Exported(export.name, str(element), export.is_mutable)


def _unit(lowered: PeProgram, program: Program, tile: TileProgram) -> Unit:
    variables = {
        name: Symbol(address, size, element)
        for module, name, address, size, element in lowered.variables
        if module == 0
    }
    exported = {s.name: Symbol(s.address, s.size, s.element, s.is_pointer) for s in lowered.symbols}
    where = {(module, name): address for module, name, address, _, _ in lowered.variables}
    return Unit(
        lowered.name,
        lowered.c,
        lowered.image,
        lowered.initialised,
        exported,
        variables,
        tuple(function.name for function in lowered.functions),
        _host_colors(program, "MEMCPYH2D"),
        _host_colors(program, "MEMCPYD2H"),
        _debug_buffers(program, where),
        overview(program, tile, lowered.variables),
    )


def _host_colors(program: Program, prefix: str) -> tuple[int, ...]:
    """Return the colors that the host feeds or drains, which `<memcpy/memcpy>` knows."""
    found = []
    for module in program.modules:
        if module.file.name != "<memcpy/memcpy>":
            continue
        for name, member in module.members():
            value = member.value if isinstance(member, values.Variable) else None
            if name.startswith(prefix) and isinstance(value, values.Scalar) and isinstance(value.value, int):
                found.append(value.value)
    return tuple(found)


def _debug_buffers(program: Program, where: Mapping[tuple[int, str], int]) -> tuple[DebugBuffer, ...]:
    found = []
    for module in program.modules:
        key = module.parameters.get("key")
        if module.file.name == "<debug>" and isinstance(key, values.Scalar):
            buffer, state = (where.get((module.number, name)) for name in ("buffer", "state"))
            if buffer is not None and state is not None:
                found.append(DebugBuffer(str(key.value), buffer, state))
    return tuple(found)


def _routes(layout: Layout, programs: list[Program]) -> dict[tuple[int, int], tuple[ColorRoute, ...]]:
    """Return the color configurations of each PE: those of the layout and those of its program."""
    local = [local_routes(program) for program in programs]
    found = {at: list(local[number]) for at, number in layout.tiles.items()}
    for (x, y, color), (config, span) in layout.colors.items():
        found[x, y].append(color_route(color, config, span))
    return {at: tuple(routes) for at, routes in found.items()}


def color_route(color: int, config: comptime.ColorConfig, span: Span) -> ColorRoute:
    """Return a color's configuration as the simulated router takes it. Errors: ``csl-filter``.

    A position of the switch that says where wavelets go leaves where they come from as the position before
    has it, and so the other way round. Source: comments of public examples.
    """
    rx, tx = _sides(config.rx), _sides(config.tx)
    positions = [(rx, tx)]
    switches = config.switches or comptime.Switches((None, None, None))
    for position in switches.positions:
        if position is None:
            break
        if position.invalid:
            positions.append((NOWHERE, NOWHERE))
            continue
        rx, tx = _sides(position.rx) or rx, _sides(position.tx) or tx
        positions.append((rx, tx))
    return ColorRoute(
        color,
        tuple(positions),
        switches.current,
        switches.ring_mode,
        _POP_MODES[switches.pop_mode],
        swap_x=config.swap_x,
        swap_y=config.swap_y,
        teardown=config.teardown,
        filter=None if config.filter is None else _filter(config.filter, span),
    )


NOWHERE: frozenset[Direction] = frozenset()
_POP_MODES: dict[str, PopMode] = {"no_pop": "none", "always_pop": "always", "pop_on_advance": "on-advance"}
_DIRECTIONS: dict[str, Direction] = {
    "WEST": "west",
    "EAST": "east",
    "SOUTH": "south",
    "NORTH": "north",
    "RAMP": "ramp",
}


def _sides(directions: tuple[str, ...] | None) -> frozenset[Direction]:
    return frozenset(_DIRECTIONS[direction] for direction in directions or ())


def _filter(given: comptime.Filter, span: Span) -> Filter:
    if given.kind == "range":
        return Filter("range", low=given.get("min_idx"), high=given.get("max_idx"))
    if given.kind != "counter":
        raise PolyloomError(
            error(
                "csl-filter",
                f"a filter of kind `{given.kind}` is not simulated",
                span,
                helps=["use a `counter` or a `range` filter"],
            )
        )
    return Filter(
        "counter",
        start=given.get("init_counter"),
        most=given.get("max_counter"),
        limit=given.get("limit1"),
        counts_data=bool(given.get("count_data")),
        counts_control=bool(given.get("count_control")),
    )


def local_routes(program: Program) -> tuple[ColorRoute, ...]:
    """Return the color configurations that a PE's program sets itself."""
    found = []
    for directive in program.directives:
        if directive.name == "set_local_color_config":
            color, config = directive.arguments
            assert isinstance(color, values.Handle)
            config_of = comptime.color_config(config, directive.span)
            found.append(color_route(color.id, config_of, directive.span))
    return tuple(found)
