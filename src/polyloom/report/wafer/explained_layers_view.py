"""``explain`` of a model for a person: a layer under its name, with its map and every stage."""

from __future__ import annotations

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from polyloom.diagnostics import Diagnostic, InternalFault, PolyloomError, Refusal
from polyloom.report.terminal import ascii_only
from polyloom.report.wafer.choice_view import print_choice
from polyloom.report.wafer.explain_view import print_explanation
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.program.wafer_program import Survey

Stages = tuple[LayerAnalysis, Survey | Diagnostic]


def print_layer(name: str, choice: Choice | None, found: Stages | Refusal, out: Console) -> None:
    """Print a layer's map, where it was chosen, and its stages; or the message with which it is refused."""
    line = "=" if ascii_only(out) else "━"
    out.print(Rule(Text(f"Layer {name}", style="bold"), align="left", characters=line))
    if choice is not None and choice.candidates:
        print_choice(choice, out)
    if isinstance(found, PolyloomError | InternalFault):
        for diagnostic in found.diagnostics:
            out.print(Text(f"refused: {diagnostic.message}", style="yellow"))
        out.print()
    else:
        print_explanation(*found, out)
