"""The layers of a program explained one by one, each on a rectangle of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polyloom.api.attempts import attempt
from polyloom.api.mapping import layer_mapping
from polyloom.api.reading import MACHINE, Path, load_for_wafer
from polyloom.api.wafer import Explanation, explain
from polyloom.diagnostics import Diagnostic, InternalFault, PolyloomError, Refusal
from polyloom.ir.conversion.split_layers import Layer, layers_of
from polyloom.ir.program import Program
from polyloom.polyhedra.effort import limited
from polyloom.sources import Given
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.explain.layers import fault_of
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.program.wafer_program import Survey
from polyloom.workers.crew import ALONE, Crew

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, eq=False)
class ExplainedLayer:
    """A layer, its map (None where none was found), and its explanation or why it is refused."""

    layer: Layer
    choice: Choice | None
    explanation: Explanation | Refusal

    @property
    def refusal(self) -> Refusal | None:
        """Why there is no explanation."""
        return self.explanation if isinstance(self.explanation, PolyloomError | InternalFault) else None

    @property
    def stages(self) -> tuple[LayerAnalysis, Survey | Diagnostic] | Refusal:
        """What is shown to a person: the stages and what roles of PEs take; or the refusal."""
        found = self.explanation
        return found if isinstance(found, PolyloomError | InternalFault) else (found.analysis, found.survey)

    def json(self) -> dict[str, Any]:
        """Return an entry of ``layers``: its name, then the document of ``explain``, or ``refused``."""
        chosen = {"choice": self.choice.json()} if self.choice and self.choice.candidates else {}
        found = self.explanation
        if isinstance(found, PolyloomError | InternalFault):
            return {"name": self.layer.name, **chosen, "refused": [d.message for d in found.diagnostics]}
        return {"name": self.layer.name, **chosen, **found.json()}


@dataclass(frozen=True, eq=False)
class LayersExplanation:
    """All layers of a program, in its order."""

    name: str
    layers: tuple[ExplainedLayer, ...]

    def __repr__(self) -> str:
        return f"<LayersExplanation of {self.name}: {len(self.layers)} layers; print it>"

    def __str__(self) -> str:
        """Return what ``polyloom explain`` prints."""
        from polyloom.report.terminal import text_of

        return text_of(self.print)

    def print(self, out: Console) -> None:
        """Print the layers in order; of a refused one, why."""
        from polyloom.report.wafer.explained_layers_view import print_layer

        for each in self.layers:
            print_layer(each.layer.name, each.choice, each.stages, out)

    def json(self) -> dict[str, Any]:
        """Return the document of ``explain --json`` for a model. Source: docs/interface.md."""
        return {"program": self.name, "layers": [each.json() for each in self.layers]}

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """Missed optimisations of all layers, and why one has no routes or order."""
        stages = [each.stages for each in self.layers]
        found = [pair for pair in stages if not isinstance(pair, PolyloomError | InternalFault)]
        refused = [survey for _, survey in found if isinstance(survey, Diagnostic)]
        return (*(r for analysis, _ in found for r in analysis.remarks), *refused)

    def fault(self) -> Refusal | None:
        """Return what was refused, with its layer; None where nothing was."""
        return fault_of([(each.layer.name, each.refusal) for each in self.layers if each.refusal is not None])


@limited("the maps of the layers")
def explain_layers(
    program: Program | Given,
    maps: Mapping[str, Path] | None = None,
    *,
    machine: str = MACHINE,
    memory: int | None = None,
    progress: Callable[[str], None] | None = None,
    crew: Crew = ALONE,
    **options: Any,
) -> LayersExplanation:
    """Explain each layer that a program's source names by itself, under a map of its own.

    ``maps``: a map for a layer, by its name; what that leaves open is chosen, and everything for a layer
    that has none: once for layers that are alike, and kept between runs. ``progress`` is called with a
    layer's name before its map is chosen; ``crew``: who chooses maps, of several layers at a time.
    ``options``: as of ``explain``. A layer that is refused, or of which workers died, has the reason in its
    ``refusal``; the others are explained. Not in the papers.
    """
    whole = load_for_wafer(program).program
    layers = layers_of(whole)
    given = maps or {}
    tasks = [_Task(layer.program, given.get(layer.name), machine, memory) for layer in layers]
    begun = None if progress is None else (lambda at: progress(layers[at].name))
    choices = crew.each(_chosen, tasks, begun, lambda _, fault: fault)
    common = {"machine": machine, "memory": memory, **options}
    explained = (_explained(*each, common) for each in zip(layers, choices, strict=True))
    return LayersExplanation(whole.name, tuple(explained))


@dataclass(frozen=True)
class _Task:
    """A layer, its map (None: what is chosen for it), and the machine with its memory."""

    program: Program
    source: Path | None
    machine: str
    memory: int | None


def _chosen(task: _Task) -> Choice | Refusal:
    return attempt(lambda: layer_mapping(task.program, task.source, machine=task.machine, memory=task.memory))


def _explained(layer: Layer, found: Choice | Refusal, options: Mapping[str, Any]) -> ExplainedLayer:
    if isinstance(found, PolyloomError | InternalFault):
        return ExplainedLayer(layer, None, found)
    return ExplainedLayer(layer, found, attempt(lambda: explain(layer.program, found, **options)))
