"""Graphs of ``torch.compile``, kept in the cache folder: another process need not lower and build them again.

A file is named by a digest of the graph as it was traced, its constants, and all else that decides about its
code (``kept.surroundings``). One that is damaged is as none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from polyloom.caches import cache_folder, is_writable
from polyloom.diagnostics import PolyloomError
from polyloom.frontends.graph.imported import Ends
from polyloom.frontends.graph.model import Graph, GraphTensor, Node
from polyloom.function.container import write_container
from polyloom.function.kept import WORTH_SECONDS, make_room, surroundings
from polyloom.function.saving import Saved, contents, opened, variant_of, variants_of
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import NativeDevice
from polyloom.mdh.restored import restored_program
from polyloom.sources import Reading


def graph_place(graph: Graph, processor: NativeDevice) -> Path | None:
    """Return where the program of a graph is kept; None where nothing can be."""
    folder = cache_folder() / "graphs"
    if not is_writable(folder):
        return None
    try:
        words = surroundings(processor, None)
    except (PolyloomError, OSError):
        return None
    key = hashlib.sha256()
    for part in _parts((*words, graph)):
        key.update(len(part).to_bytes(8, "little") + part)
    return folder / f"{key.hexdigest()[:40]}.graph"


def _parts(value: Any) -> Iterator[bytes]:
    """Yield all that a value is made of: arrays, also those inside of attributes, by each bit of them."""
    yield type(value).__name__.encode()
    if isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, Graph | Node | GraphTensor):
        for each in fields(value):
            yield from _parts(getattr(value, each.name))
    elif isinstance(value, Mapping):
        yield from _parts(tuple(value.items()))
    elif isinstance(value, tuple | list):
        yield str(len(value)).encode()
        for part in value:
            yield from _parts(part)
    else:
        yield repr(value).encode()


def kept_graph(
    place: Path, processor: NativeDevice, whole: Callable[[], CompiledProgram]
) -> tuple[CompiledProgram, Ends] | None:
    """Return the program that is kept, and its ends; None where there is none that is whole.

    ``whole``: makes it of the graph, where something is asked that is not kept.
    """
    if not place.exists():
        return None
    try:
        (variant,) = variants_of(opened(place))
        if variant.ends is None:
            return None
        found = restored_program(variant.document, variant.weights, variant.objects, processor, whole)
        with suppress(OSError):
            place.touch()
        return found, variant.ends
    except (PolyloomError, OSError, KeyError, TypeError, ValueError, MemoryError):
        return None


def keep_graph(place: Path, program: CompiledProgram, ends: Ends, seconds: float) -> None:
    """Keep a program that was called, where making it took long; nothing is said if that cannot be done."""
    if seconds < WORTH_SECONDS:
        return
    with suppress(PolyloomError, OSError, MemoryError):
        variant = variant_of(program, (), ends, {}, {})
        manifest, members = contents(Saved("graph", b"", Reading(), {}, [variant]), None)
        make_room(place.parent)
        write_container(place, manifest, members)
