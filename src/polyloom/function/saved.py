"""Functions that were saved: what they were built for runs at once, for the rest their source is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from polyloom.caches import temporary_folder
from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.graph.imported import Ends
from polyloom.function.container import Container
from polyloom.function.functions import Function
from polyloom.function.saving import PATH, TEXT, Variant, reading_of
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import NativeDevice
from polyloom.mdh.restored import restored_program
from polyloom.polyhedra.effort import limited
from polyloom.sources import Given, Loaded, LoadedHost, Reading, load_program


class SavedFunction(Function):
    """A function of a file that ``save`` wrote."""

    def __init__(
        self,
        container: Container,
        variant: Variant,
        device: NativeDevice,
        opened: Callable[[Loaded | LoadedHost], CompiledProgram],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> None:
        """``shapes``: of the inputs, where the model leaves them open."""
        manifest = container.manifest
        self._container, self._variant, self._device = container, variant, device
        self._reading = with_shapes(reading_of(manifest["source"]["reading"]), shapes)
        self._values, self._opened = manifest["values"], opened
        self.__name__ = manifest["name"]
        self.inputs, self.outputs = dict(variant.inputs), dict(variant.outputs)

    @cached_property
    def _source(self) -> Given:  # type: ignore[override]
        return source_of(self._container)

    @cached_property
    @limited("the program")
    def loaded(self) -> Loaded | LoadedHost:  # type: ignore[override]
        """The program, read from the source in the file. Errors: ``saved-source``; those of ``load``."""
        return load_program(self._source, self._reading)

    @cached_property
    def compiled(self) -> CompiledProgram:
        """The program as it was saved, on the processor. Errors: ``native-load``."""
        variant = self._variant
        return restored_program(
            variant.document, variant.weights, variant.objects, self._device, lambda: self._whole
        )

    @cached_property
    def _whole(self) -> CompiledProgram:
        return self._opened(self.loaded)

    @property
    def _ends(self) -> Ends | None:
        return self._variant.ends


def with_shapes(reading: Reading, shapes: Mapping[str, tuple[int, ...]]) -> Reading:
    """Return how a source is read for shapes of its inputs."""
    return replace(reading, shapes={**reading.shapes, **shapes})


def source_of(container: Container) -> Given:
    """Return the source that is in a file. Errors: ``saved-source`` where there is none."""
    about = container.manifest["source"]
    if about["kind"] == PATH:
        return Path(about["name"])
    data = container.member("source")
    if not data:
        helps = ["ask that of what `polyloom.load(source)` gives", "or save it with `source=True`"]
        message = f"`{container.path}` does not hold what it was read from"
        raise PolyloomError(error("saved-source", message, helps=helps))
    if about["kind"] != TEXT:
        return data
    if not about["name"]:
        return data.decode()
    path = Path(about["name"])
    if path.is_file() and path.read_bytes() == data:
        return path
    beside = temporary_folder() / path.name
    beside.write_bytes(data)
    return beside
