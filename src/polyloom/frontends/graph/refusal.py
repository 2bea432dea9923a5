"""What a graph holds that a tensor program has not: all of it in one message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyloom.diagnostics import Diagnostic, Unsupported, error, visible_name
from polyloom.frontends.graph.model import GraphTensor


class OpenShapes(Unsupported):
    """Inputs have open dimensions, of which no sizes are known; that is all that is wrong so far.

    ``inputs``, ``outputs``: of the graph ``name``, as its file declares them.
    """

    def __init__(self, *diagnostics: Diagnostic, inputs: tuple[GraphTensor, ...] = ()) -> None:
        super().__init__(*diagnostics)
        self.inputs, self.outputs, self.name = inputs, tuple[GraphTensor, ...](), "model"


class Refused(Exception):
    """An operation cannot be expressed; the text says why."""


def refuse_if(fault: object, reason: str) -> None:
    """Raise ``Refused`` where there is a fault."""
    if fault:
        raise Refused(reason)


@dataclass(frozen=True)
class Refusal:
    """A node that cannot be expressed, and why."""

    node: str
    op: str
    reason: str

    def __str__(self) -> str:
        return f"{visible_name(self.node)} ({visible_name(self.op)}): {visible_name(self.reason)}"


def unsupported(model: str, refusals: Sequence[Refusal], helps: Sequence[str] = ()) -> Unsupported:
    """Return the one error that lists every refusal. ``helps``: what a framework's users can do more."""
    count = "1 node" if len(refusals) == 1 else f"{len(refusals)} nodes"
    return Unsupported(
        error(
            "model-inexpressible",
            f"{count} of `{model}` cannot be expressed as affine statements",
            notes=[str(r) for r in refusals],
            helps=[
                *helps,
                "`polyloom docs models` says what can be, and how a model is brought into that form",
            ],
        )
    )
