"""Functions of ``polyloom.jit`` that were saved: what they were built for runs at once.

For other types and sizes of arguments their text is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from json import loads
from typing import Any

from polyloom.diagnostics import PolyloomError, Source, error
from polyloom.frontends.python import FunctionText, text_of_function
from polyloom.function.container import Container
from polyloom.function.jit_documents import calls_of, types_of
from polyloom.function.jitted import JIT, Jitted, Kind
from polyloom.function.python_sources import Document, file_name, function_of, signature_of
from polyloom.function.saving import Variant
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import NativeDevice
from polyloom.mdh.restored import restored_program


class SavedJitted(Jitted):
    """A function of a file that ``Jitted.save`` wrote."""

    def __init__(
        self, container: Container, variants: list[Variant], device: NativeDevice, threads: int | None
    ) -> None:
        about = container.manifest[JIT]
        self._container = container
        self._fp, self._device, self._threads = about["fp"], None, threads
        self._signature = signature_of(about["signature"])
        self.__name__, self.__doc__ = container.manifest["name"], about["doc"]
        self._kinds = {}
        for document, variant in zip(about["kinds"], variants, strict=True):
            self._add(document, variant, device)

    def _add(self, document: Document, variant: Variant, device: NativeDevice) -> None:
        types = types_of(document["types"])

        @cache
        def whole() -> CompiledProgram:
            return self._made(types).compiled

        compiled = restored_program(variant.document, variant.weights, variant.objects, device, whole)
        kind = Kind(calls_of(document["calls"], self._source), compiled, whole)
        kind.valid.update(tuple(sizes) for sizes in document["sizes"])
        self._kinds[types] = kind

    @cached_property
    def _kept(self) -> Document | None:
        """Its text as a document; None where it was left out."""
        found: Document | None = loads(self._container.member("source") or b"null")
        return found

    @property
    def _source(self) -> Source | None:
        kept = self._kept
        return None if kept is None else Source(file_name(kept, self._container.path), kept["lines"])

    @cached_property
    def python(self) -> Callable[..., Any]:  # type: ignore[override]
        """The function as it stood. Errors: ``saved-source``."""
        if self._kept is None:
            raise self._without_text([])
        try:
            return function_of(self._kept, self._container.path)
        except (ImportError, AttributeError) as fault:
            raise self._without_text([f"what its text needs is not here: {fault}"]) from fault

    @cached_property
    def _text(self) -> FunctionText:  # type: ignore[override]
        return text_of_function(self.python)

    def _document(self) -> Document | None:
        return None if self._kept is None else {**self._kept, "indent": 0}

    def _without_text(self, notes: list[str]) -> PolyloomError:
        helps = ["give arguments of the types and sizes that it was saved for", "or save it again with these"]
        message = f"`{self._container.path}` does not hold the text of `{self.__name__}`"
        return PolyloomError(error("saved-source", message, notes=notes, helps=helps))
