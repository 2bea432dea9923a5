"""What is given to `cslc`: numbers by name, pairs, and the rest of its command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from polyloom.diagnostics import PolyloomError, error


@dataclass(frozen=True)
class Options:
    """What a program is compiled with.

    ``fabric_size``: (width, height) of the wafer, ``fabric_offset`` where the program lies.
    """

    layout: Path
    output: Path = Path("out")
    arch: str = "wse2"
    params: dict[str, int] = field(default_factory=dict)
    colors: dict[str, int] = field(default_factory=dict)
    fabric_size: tuple[int, int] | None = None
    fabric_offset: tuple[int, int] = (0, 0)
    memcpy: bool = False
    channels: int = 1
    west_buffer: int = 0
    east_buffer: int = 0
    import_paths: tuple[Path, ...] = ()

    def check_size(self, width: int, height: int) -> None:
        """Raise `csl-fabric-size` unless a program of this size, with memcpy around it, fits the wafer."""
        if self.fabric_size is None:
            return
        (total_width, total_height), (x, y) = self.fabric_size, self.fabric_offset
        around = (7 + self.west_buffer + self.east_buffer, 2) if self.memcpy else (0, 0)
        first = (4 + self.west_buffer, 1) if self.memcpy else (0, 0)
        fits = (
            x + width + around[0] - first[0] <= total_width
            and y + height + around[1] - first[1] <= total_height
        )
        if not fits or x < first[0] or y < first[1]:
            notes = (
                [f"memcpy takes {around[0]} columns and {around[1]} rows around it"] if self.memcpy else []
            )
            columns = max(x - first[0], 0) + width + around[0]
            rows = max(y - first[1], 0) + height + around[1]
            raise PolyloomError(
                error(
                    "csl-fabric-size",
                    f"a program of {width} x {height} PEs at ({x}, {y}) does not fit a fabric of "
                    f"{total_width} x {total_height}",
                    notes=notes,
                    helps=[f"`--fabric-dims={columns},{rows}` is large enough"],
                )
            )


def numbers(texts: Iterable[str], what: str) -> dict[str, int]:
    """Return `NAME:VALUE,NAME:VALUE` of all texts, later ones over earlier. Errors: `csl-option`."""
    found: dict[str, int] = {}
    for item in (part for text in texts for part in text.split(",") if part.strip()):
        name, colon, value = item.partition(":")
        try:
            number = int(value.strip(), 0)
        except ValueError:
            colon = ""
        if not colon or not name.strip().isidentifier():
            raise PolyloomError(
                error(
                    "csl-option",
                    f"`{item}` in {what} is not of the form NAME:NUMBER",
                    helps=[f"{what}=size:4,depth:8"],
                )
            )
        found[name.strip()] = number
    return found


def pair(text: str, what: str) -> tuple[int, int]:
    """Return `X,Y`. Errors: `csl-option`."""
    try:
        x, y = (int(part) for part in text.split(","))
    except ValueError:
        raise PolyloomError(
            error("csl-option", f"`{text}` in {what} is not of the form X,Y", helps=[f"{what}=8,3"])
        ) from None
    return x, y
