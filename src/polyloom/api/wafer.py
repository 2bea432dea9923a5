"""The wafer back end from Python: its stages explained, the code of every PE."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from polyloom.api.mapping import machine_model, mapping_of
from polyloom.api.reading import MACHINE, Path, load_for_wafer
from polyloom.diagnostics import Diagnostic, PolyloomError, Unsupported, error
from polyloom.ir.program import Program
from polyloom.pipeline import analyse_layer, compile_layer
from polyloom.polyhedra.effort import limited
from polyloom.sources import Given
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.collectives import ReductionShape
from polyloom.wafer.explain.document import explanation, resources_document
from polyloom.wafer.host.folder import write_folder
from polyloom.wafer.host.manifest import manifest
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.machine.options import Extension, without
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.program.wafer_program import Survey, WaferProgram, survey
from polyloom.wafer.simd.decision import SimdMode, SimdOptions


@dataclass(frozen=True, eq=False)
class Explanation:
    """Every stage of the analysis of a layer, as values (``analysis``) and as a document (``json``)."""

    analysis: LayerAnalysis

    def __repr__(self) -> str:
        return f"<Explanation of {self.analysis.program.name}: {len(self.analysis.simd)} tasks; print it>"

    def __str__(self) -> str:
        """Return what ``polyloom explain`` prints."""
        from polyloom.report.terminal import text_of
        from polyloom.report.wafer.explain_view import print_explanation

        return text_of(lambda out: print_explanation(self.analysis, self.survey, out))

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """Missed optimisations, with their reasons."""
        return self.analysis.remarks

    @cached_property
    @limited("the roles of the PEs")
    def survey(self) -> Survey | Diagnostic:
        """What each role of PE takes of the machine; or why no routes or order were found."""
        try:
            return survey(self.analysis, self.analysis.options.machine)
        except Unsupported as refused:
            return refused.diagnostics[0]

    @limited("the sets of the stages")
    def json(self) -> dict[str, Any]:
        """Return the document of ``explain --json``; isl objects are strings. Source: docs/interface.md."""
        found = self.survey
        if isinstance(found, Diagnostic):
            return explanation(self.analysis) | {"resources": {"refused": found.message}}
        resources = resources_document(found, self.analysis.options.machine)
        return explanation(self.analysis) | {"resources": resources}


@dataclass(frozen=True, eq=False)
class CompiledLayer:
    """The code for every role of PE, and what a host program must know."""

    program: WaferProgram

    def __repr__(self) -> str:
        return f"<CompiledLayer {self.program.analysis.program.name}: {', '.join(self.files)}>"

    def write(self, folder: Path) -> tuple[str, ...]:
        """Write everything that a C compiler and a host program need into a folder. Return the names.

        Errors: ``folder-occupied``, ``file-unwritable``.
        """
        return write_folder(self.program, pathlib.Path(folder))

    @property
    def files(self) -> dict[str, str]:
        """File name to text: C for each role, the layout, shared headers."""
        return self.program.files

    @property
    @limited("the manifest")
    def manifest(self) -> dict[str, Any]:
        """Which bytes lie where before the start, and what each port is fed and gives."""
        return manifest(self.program)

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """Missed optimisations, with their reasons."""
        return self.program.analysis.remarks


@limited("the stages of the layer")
def explain(
    program: Program | Given,
    mapping: LairMap | Choice | Path,
    simd: str = "auto",
    machine: str | Machine = MACHINE,
    *,
    simd_without: Sequence[str] = (),
    reduction: str = "auto",
    memory: int | None = None,
) -> Explanation:
    """Run every stage up to SIMD detection and keep what it found.

    ``simd``: ``auto``, ``off``, ``hull``, ``exact`` or ``enumerate``; ``simd_without``: the names of
    extensions that are switched off (docs/simd.md); ``machine``: whose costs choose among them;
    ``reduction``: ``auto``, ``chain``, ``two-phase`` or ``tree``, the shape of reductions along lines of PEs;
    ``memory``: as in ``compile_wafer``, for arrays that would be enlarged and temporaries.

    Errors: ``PolyloomError`` and ``Unsupported`` where the map does not work.
    Source: dtg_codegen, Sec. 4 and 5.
    """
    model = machine_model(machine, memory)
    options = SimdOptions(_mode(simd), extensions=_extensions(simd_without), machine=model)
    read = load_for_wafer(program).program
    placed = mapping_of(mapping, read, machine, memory)
    return Explanation(analyse_layer(read, placed, options, _shape(reduction)))


@limited("the code of the PEs")
def compile_wafer(
    program: Program | Given,
    mapping: LairMap | Choice | Path,
    simd: str = "auto",
    machine: str | Machine = MACHINE,
    memory: int | None = None,
    *,
    simd_without: Sequence[str] = (),
    reduction: str = "auto",
) -> CompiledLayer:
    """Make the C code of every PE.

    ``machine``: ``cs1``, ``cs2`` or ``cs3``; ``memory``: bytes that the data of a PE may fill,
    in place of the machine's (48 KiB less what is kept for code).

    Errors: ``PolyloomError`` and ``Unsupported`` where the map does not work or the layer does not fit.
    Source: dtg_codegen, Sec. 4 and 5, and its slides.
    """
    found = explain(
        program, mapping, simd, machine, simd_without=simd_without, reduction=reduction, memory=memory
    )
    return CompiledLayer(compile_layer(found.analysis, machine_model(machine, memory)))


def _shape(name: str) -> ReductionShape:
    known = [shape.value for shape in ReductionShape]
    if name not in known:
        helps = [f"known are {', '.join(known)}"]
        raise PolyloomError(error("reduction-unknown", f"there is no reduction `{name}`", helps=helps))
    return ReductionShape(name)


def _extensions(names: Sequence[str]) -> frozenset[Extension]:
    try:
        return without(*names)
    except ValueError as unknown:
        known = ", ".join(extension.value for extension in Extension)
        raise PolyloomError(
            error("simd-extension", f"there is no such extension: {unknown}", helps=[f"there are {known}"])
        ) from None


def _mode(name: str) -> SimdMode:
    try:
        return SimdMode(name)
    except ValueError:
        known = ", ".join(mode.value for mode in SimdMode)
        raise PolyloomError(
            error("simd-mode", f"there is no mode `{name}`", helps=[f"there are {known}"])
        ) from None
