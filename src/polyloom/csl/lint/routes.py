"""Rules on colors: each once, routes that meet, switches that the machine has."""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.csl.comptime import ColorConfig
from polyloom.csl.comptime.colors import color_of
from polyloom.csl.lint.subject import Subject, uses_memcpy
from polyloom.diagnostics import Diagnostic, Span, error, remark, warning

STEPS = {"WEST": (-1, 0), "EAST": (1, 0), "NORTH": (0, -1), "SOUTH": (0, 1)}
OPPOSITE = {"WEST": "EAST", "EAST": "WEST", "NORTH": "SOUTH", "SOUTH": "NORTH"}
SWITCHED_ON_WSE3 = frozenset({*range(10), 12, 13, 16, 17, 20, 21})
MEMCPY_COLORS = frozenset({21, 22, 23})


def configured_once(subject: Subject) -> Iterator[Diagnostic]:
    """R03: the layout and a PE's program configure different colors."""
    for (x, y), number in subject.layout.tiles.items():
        seen: dict[int, Span] = {}
        for directive in subject.programs[number].directives:
            if directive.name != "set_local_color_config":
                continue
            color = color_of(directive.arguments[0], directive.span)
            first = seen.get(color)
            if first is None and (x, y, color) in subject.layout.colors:
                first = subject.layout.colors[x, y, color][1]
            if first is not None:
                yield error(
                    "csl-color-twice",
                    f"color {color} of PE ({x}, {y}) is configured twice",
                    directive.span,
                    notes=[f"first at {first}"],
                    helps=["configure a color of a PE in the layout or in its program, once"],
                )
            seen[color] = directive.span


def memcpy_colors(subject: Subject) -> Iterator[Diagnostic]:
    """R06: memcpy routes colors 21 to 23 itself."""
    for (x, y, color), (_, span) in subject.colors.items():
        if color in MEMCPY_COLORS and uses_memcpy(subject.programs[subject.layout.tiles[x, y]]):
            yield warning(
                "csl-memcpy-color",
                f"color {color} is memcpy's",
                span,
                notes=["a program that imports memcpy has colors 0 to 20"],
                helps=["choose another color"],
            )


Sides = tuple[tuple[str, ...], tuple[str, ...]]


def _positions(config: ColorConfig) -> list[Sides]:
    """Return inputs and outputs of switch positions, from 0 on; each keeps what it does not name."""
    rx, tx = config.rx, config.tx
    found = [(rx, tx)]
    for position in config.switches.positions if config.switches else ():
        if position is not None and not position.invalid:
            rx = rx if position.rx is None else position.rx
            tx = tx if position.tx is None else position.tx
            found.append((rx, tx))
    return found


def _initial(config: ColorConfig) -> Sides:
    found = _positions(config)
    current = config.switches.current if config.switches else 0
    return found[min(current, len(found) - 1)]


def routes_meet(subject: Subject) -> Iterator[Diagnostic]:
    """R09: what leaves a router arrives at one that takes it, inside the rectangle."""
    width, height = subject.layout.width, subject.layout.height
    for (x, y, color), (config, span) in subject.colors.items():
        if config.swap_x or config.swap_y:
            continue
        for direction in sorted({d for _, tx in _positions(config) for d in tx if d != "RAMP"}):
            dx, dy = STEPS[direction]
            at = (x + dx, y + dy)
            if not (0 <= at[0] < width and 0 <= at[1] < height):
                yield _leaving(color, (x, y), direction, config, span)
                continue
            there = subject.colors.get((*at, color))
            if there is not None and (there[0].swap_x or there[0].swap_y):
                continue
            if there is None or all(OPPOSITE[direction] not in rx for rx, _ in _positions(there[0])):
                yield warning(
                    "csl-route-lost",
                    f"color {color} goes {direction} from PE ({x}, {y}), and PE {at} does not take it",
                    span,
                    notes=["wavelets wait in the link for ever, and the sender after them"],
                    helps=[f"give PE {at} a route of color {color} with {OPPOSITE[direction]} in `rx`"],
                )


def _leaving(color: int, at: tuple[int, int], direction: str, config: ColorConfig, span: Span) -> Diagnostic:
    """Return a warning of what is passed on out of the rectangle, a remark of what this PE alone may send."""
    message = f"color {color} of PE {at} goes {direction}, out of the rectangle"
    helps = [f"end the route at the border: no {direction} in `tx` there"]
    if any(set(rx) - {"RAMP"} for rx, tx in _positions(config) if direction in tx):
        notes = ["what comes from the neighbour is lost there, or stops whoever sends it"]
        return warning("csl-route-leaves", message, span, notes=notes, helps=helps)
    notes = ["what this PE sends on it is lost, or stops it; nothing else comes here"]
    return remark("csl-route-leaves", message, span, notes=notes, helps=helps)


def no_cycles(subject: Subject) -> Iterator[Diagnostic]:
    """R10: no wavelet comes back to a router that it left."""
    following: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
    for (x, y, color), (config, _) in subject.colors.items():
        steps = [(STEPS[d], OPPOSITE[d]) for d in _initial(config)[1] if d != "RAMP"]
        reached = [((x + dx, y + dy, color), back) for (dx, dy), back in steps]
        following[x, y, color] = [
            at for at, back in reached if at in subject.colors and back in _initial(subject.colors[at][0])[0]
        ]
    for start in _on_cycles(following):
        x, y, color = start
        yield warning(
            "csl-route-cycle",
            f"color {color} comes back to PE ({x}, {y}), where it goes round again",
            subject.colors[start][1],
            notes=["a wavelet on it never ends"],
            helps=["end the route at one of its PEs: `tx` with RAMP only"],
        )


Node = tuple[int, int, int]


def _on_cycles(following: dict[Node, list[Node]]) -> list[Node]:
    """Return a node of each cycle, by depth first search without recursion."""
    state: dict[Node, int] = {}
    found: list[Node] = []
    for root in following:
        stack = [(root, iter(following[root]))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            node, rest = stack[-1]
            after = next(rest, None)
            if after is None:
                state[node] = 2
                stack.pop()
            elif after not in state:
                state[after] = 1
                stack.append((after, iter(following[after])))
            elif state[after] == 1:
                found.append(after)
    return found


def one_input(subject: Subject) -> Iterator[Diagnostic]:
    """R08: wavelets of one color that come from two sides are mixed."""
    for (x, y, color), (config, span) in subject.colors.items():
        for rx, _ in _positions(config):
            if len(rx) > 1:
                yield remark(
                    "csl-merge",
                    f"color {color} of PE ({x}, {y}) comes from {' and '.join(rx)}",
                    span,
                    notes=["where both send at once, their order is open, or the machine refuses it"],
                    helps=["let one side send at a time, or use two colors or switch positions"],
                )


def switches(subject: Subject) -> Iterator[Diagnostic]:
    """R11, R12: what switch positions of the architecture can change, and on which colors."""
    for (_, _, color), (config, span) in subject.colors.items():
        if config.switches is None:
            continue
        if subject.arch == "wse3" and color not in SWITCHED_ON_WSE3:
            yield warning(
                "csl-switch-color",
                f"color {color} has no switches on wse3",
                span,
                helps=["use one of " + ", ".join(map(str, sorted(SWITCHED_ON_WSE3)))],
            )
        for number, position in enumerate(config.switches.positions, 1):
            if position is None or subject.arch != "wse2":
                continue
            if position.rx and position.tx:
                yield error(
                    "csl-switch-both",
                    f"switch position {number} of color {color} changes `rx` and `tx`",
                    span,
                    notes=["a position changes one of them on wse2"],
                    helps=["change one; the other stays that of position 0"],
                )
            if position.rx and len(position.rx) > 1:
                yield error(
                    "csl-switch-inputs",
                    f"switch position {number} of color {color} has {len(position.rx)} inputs",
                    span,
                    notes=["a position has one on wse2"],
                    helps=["use one position for each input"],
                )


def counter_filters(subject: Subject) -> Iterator[Diagnostic]:
    """R15: documents and machine disagree on the end of a counter filter."""
    for (_, _, color), (config, span) in subject.colors.items():
        if config.filter is not None and config.filter.kind == "counter":
            yield remark(
                "csl-filter-counter",
                f"the counter of color {color} counts from 0 to `max_counter`, that included",
                span,
                notes=["the documents say that it is excluded; simulators and examples include it"],
            )
