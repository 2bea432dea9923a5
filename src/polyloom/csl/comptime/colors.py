"""What a router does with a color: routes, switch positions, filters, out of a struct of the program."""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.csl import types, values
from polyloom.csl.comptime.faults import fault
from polyloom.csl.values import Value
from polyloom.diagnostics import Span

Directions = tuple[str, ...]

ROUTABLE = 24
"""Colors that routers know: 0 to 23."""


@dataclass(frozen=True)
class Position:
    """A switch position: other inputs or outputs (``None``: as in the position before), or ``invalid``."""

    rx: Directions | None
    tx: Directions | None
    invalid: bool = False


@dataclass(frozen=True)
class Switches:
    """Positions 1 to 3 (``None``: not set), where it begins, what a control wavelet does with its commands.

    ``pop_mode``: ``no_pop``, ``always_pop`` or ``pop_on_advance``.
    """

    positions: tuple[Position | None, ...]
    current: int = 0
    ring_mode: bool = False
    pop_mode: str = "no_pop"


@dataclass(frozen=True)
class Filter:
    """What a PE takes of a color; ``kind``: a key of ``FILTER_FIELDS``; the fields as given."""

    kind: str
    fields: tuple[tuple[str, int], ...]

    def get(self, name: str, default: int = 0) -> int:
        """Return a field, as a number."""
        return dict(self.fields).get(name, default)


@dataclass(frozen=True)
class ColorConfig:
    """The configuration of a color in one router; ``rx`` and ``tx`` are directions at position 0.

    ``swap_x``, ``swap_y`` (wse2): wavelets that pass in this direction leave on the color whose number
    differs in the lowest bit.
    """

    rx: Directions
    tx: Directions
    switches: Switches | None = None
    filter: Filter | None = None
    teardown: bool = False
    swap_x: bool = False
    swap_y: bool = False


FILTER_FIELDS = {
    "counter": (
        *("count_data", "count_control", "init_counter", "max_counter", "limit1", "limit2"),
        *("filter_control", "fast_mode"),
    ),
    "range": ("min_idx", "max_idx"),
    "sparse_counter": ("max_idx", "init_counter", "max_counter", "limit1", "limit2"),
}


def color_config(value: Value, span: Span) -> ColorConfig:
    """Return the configuration that a struct describes.

    Errors: ``csl-color`` where it has no routes, a field that none has, or a direction twice.
    """
    fields = _fields(value, span, "a color's configuration")
    _check(fields, ("routes", "switches", "filter", "teardown"), "a color's configuration", span)
    if "routes" not in fields:
        raise fault(
            "csl-color",
            "a color's configuration has no `routes`",
            span,
            helps=["add `.routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } }`"],
        )
    rx, tx, swap_x, swap_y = _routes(fields["routes"], span)
    switches = _switches(fields["switches"], span) if "switches" in fields else None
    filter_ = _filter(fields["filter"], span) if "filter" in fields else None
    teardown = _flag(fields.get("teardown"), "teardown", span)
    return ColorConfig(rx, tx, switches, filter_, teardown, swap_x, swap_y)


def _fields(value: Value, span: Span, what: str) -> dict[str, Value]:
    if isinstance(value, values.StructValue):
        return {f.name: v for f, v in zip(value.type.fields, value.fields, strict=True)}
    raise fault(
        "csl-color",
        f"{what} is a struct, this is a `{value.type}`",
        span,
        helps=["write `.{ .name = value }`"],
    )


def _check(fields: dict[str, Value], known: tuple[str, ...], what: str, span: Span) -> None:
    for name in fields:
        if name not in known:
            raise fault(
                "csl-color",
                f"{what} has no field `{name}`",
                span,
                helps=["its fields are " + ", ".join(f"`{k}`" for k in known)],
            )


_RX_SHIFT = 5
_MASK = 31


def _routes(value: Value, span: Span) -> tuple[Directions, Directions, bool, bool]:
    bits = _number(value)
    if bits is not None:
        return _of_bits(bits >> _RX_SHIFT & _MASK), _of_bits(bits & _MASK), False, False
    fields = _fields(value, span, "`routes`")
    _check(fields, ("rx", "tx", "color_swap_x", "color_swap_y"), "`routes`", span)
    rx, tx = (_directions(fields.get(n), n, span) for n in ("rx", "tx"))
    swap_x, swap_y = (_flag(fields.get(f"color_swap_{d}"), f"color_swap_{d}", span) for d in "xy")
    return rx, tx, swap_x, swap_y


def _of_bits(bits: int) -> Directions:
    return tuple(d for k, d in enumerate(values.DIRECTIONS) if bits >> k & 1)


def _number(value: Value | None) -> int | None:
    if isinstance(value, values.Scalar) and isinstance(value.value, int):
        return int(value.value)
    return None


def _directions(value: Value | None, name: str, span: Span) -> Directions:
    parts: tuple[Value, ...]
    if isinstance(value, values.TupleValue | values.ArrayValue):
        parts = tuple(value.elements)
    elif isinstance(value, values.StructValue) and not value.fields:
        parts = ()
    else:
        parts = () if value is None else (value,)
    found: list[str] = []
    for part in parts:
        if not isinstance(part, values.Handle) or part.type != types.DIRECTION:
            raise fault(
                "csl-color",
                f"`{name}` is made of directions, this is a `{part.type}`",
                span,
                helps=["directions are " + ", ".join(f"`{d}`" for d in values.DIRECTIONS)],
            )
        direction = values.DIRECTIONS[part.id]
        if direction in found:
            raise fault("csl-color", f"`{name}` names {direction} twice", span, helps=["name it once"])
        found.append(direction)
    return tuple(found)


def _switches(value: Value, span: Span) -> Switches:
    fields = _fields(value, span, "`switches`")
    known = ("pos1", "pos2", "pos3", "current_switch_pos", "ring_mode", "pop_mode")
    _check(fields, known, "`switches`", span)
    positions = tuple(_position(fields.get(f"pos{k}"), span) for k in (1, 2, 3))
    current = _number(fields.get("current_switch_pos")) or 0
    if not 0 <= current <= len(positions):
        raise fault(
            "csl-color", f"there is no switch position {current}", span, helps=["positions are 0 to 3"]
        )
    ring = _flag(fields.get("ring_mode"), "ring_mode", span)
    return Switches(positions, current, ring, _pop_mode(fields.get("pop_mode"), span))


def _position(value: Value | None, span: Span) -> Position | None:
    if value is None:
        return None
    bits = _number(value)
    if bits is not None:
        if bits == 0:
            return None
        rx, tx = _of_bits(bits >> _RX_SHIFT & _MASK), _of_bits(bits & _MASK)
        return Position(rx or None, tx or None)
    fields = _fields(value, span, "a switch position")
    _check(fields, ("rx", "tx", "invalid"), "a switch position", span)
    return Position(
        _directions(fields["rx"], "rx", span) if "rx" in fields else None,
        _directions(fields["tx"], "tx", span) if "tx" in fields else None,
        _flag(fields.get("invalid"), "invalid", span),
    )


POP_MODES = ("no_pop", "always_pop", "pop_on_advance")


def _pop_mode(value: Value | None, span: Span) -> str:
    if value is None:
        return "no_pop"
    return _chosen(value, POP_MODES, "`pop_mode`", span) or "no_pop"


def _chosen(value: Value, known: tuple[str, ...], what: str, span: Span) -> str | None:
    fields = _fields(value, span, what)
    _check(fields, known, what, span)
    chosen = [name for name, given in fields.items() if _flag(given, name, span)]
    if len(chosen) > 1:
        raise fault("csl-color", f"{what} chooses {len(chosen)} things", span, helps=["choose one"])
    return chosen[0] if chosen else None


def _flag(value: Value | None, name: str, span: Span) -> bool:
    if value is None:
        return False
    if isinstance(value, values.Scalar) and value.type == types.BOOL:
        return bool(value.value)
    raise fault("csl-color", f"`{name}` is `true` or `false`", span, helps=[f"write `.{name} = true`"])


def _filter(value: Value, span: Span) -> Filter:
    fields = _fields(value, span, "`filter`")
    if "kind" not in fields:
        raise fault("csl-color", "`filter` has no `kind`", span, helps=["add `.kind = .{ .range = true }`"])
    kind = _chosen(fields.pop("kind"), tuple(FILTER_FIELDS), "the kind of a filter", span)
    if kind is None:
        raise fault("csl-color", "the kind of a filter is not chosen", span, helps=["write `.range = true`"])
    _check(fields, FILTER_FIELDS[kind], f"a filter of kind `{kind}`", span)
    numbers: list[tuple[str, int]] = []
    for name, given in fields.items():
        number = _number(given)
        if number is None:
            raise fault("csl-color", f"`{name}` is a number", span, helps=[f"write `.{name} = 1`"])
        numbers.append((name, number))
    return Filter(kind, tuple(numbers))


def color_of(value: Value, span: Span) -> int:
    """Return the number of a color that routers know. Errors: ``csl-color``."""
    if isinstance(value, values.Handle) and value.type == types.COLOR:
        if value.id < ROUTABLE:
            return value.id
        raise fault(
            "csl-color",
            f"color {value.id} has no routes",
            span,
            helps=[f"colors of routers are 0 to {ROUTABLE - 1}"],
        )
    raise fault(
        "csl-color",
        f"a color is expected, this is a `{value.type}`",
        span,
        helps=["make it with `@get_color`"],
    )
