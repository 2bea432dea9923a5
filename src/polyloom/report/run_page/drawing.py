"""Drawings as SVG: lines, rectangles and texts at places; logarithmic axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

from markupsafe import Markup

from polyloom.diagnostics import visible


@dataclass
class Drawing:
    """A drawing of so many pixels; colours are classes of the page's style sheet."""

    width: float
    height: float
    label: str
    parts: list[str] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Add a line."""
        self.parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def path(self, points: list[tuple[float, float]], kind: str) -> None:
        """Add a line through points."""
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline class="{kind}" points="{text}"/>')

    def box(self, x: float, y: float, width: float, height: float, kind: str, title: str = "") -> None:
        """Add a rectangle; ``title``: what is said where it is pointed at."""
        about = f"<title>{_text(title)}</title>" if title else ""
        size = f'width="{width:.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}>{about}</rect>')

    def polygon(self, points: list[tuple[float, float]], kind: str, title: str) -> None:
        """Add a polygon; ``title``: what is said where it is pointed at."""
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        about = f"<title>{_text(title)}</title>"
        self.parts.append(f'<polygon class="{kind}" points="{text}">{about}</polygon>')

    def dot(self, x: float, y: float, kind: str, title: str, radius: float = 5) -> None:
        """Add a circle."""
        about = f"<title>{_text(title)}</title>"
        self.parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">{about}</circle>')

    def text(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        """Add a text; ``anchor``: ``start``, ``middle`` or ``end``."""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_text(text)}</text>')

    def svg(self) -> Markup:
        """Return the drawing as an element of a page."""
        size = f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" style="max-width: {self.width:.0f}px"'
        head = f'<svg class="drawn" role="img" aria-label="{_text(self.label)}" width="100%" {size}>'
        return Markup(head + "".join(self.parts) + "</svg>")


def _text(text: str) -> str:
    return escape(visible(text))


@dataclass(frozen=True)
class LogAxis:
    """Values from ``low`` to ``high``, both above 0, at the pixels ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (log10(value) - log10(self.low)) / max(log10(self.high) - log10(self.low), 1e-9)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> Iterator[float]:
        """Yield the powers of ten on the axis."""
        for power in range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1):
            yield 10.0**power
