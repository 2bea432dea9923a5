"""Graphs of ``torch.compile``, kept in the cache folder: another process need not lower and build them again.

A file is named by a digest of the graph as it was traced, its constants, and all else that decides about its
code (``kept.surroundings``). One that is damaged is as none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from polyloom.caches import cache_folder, is_writable
from polyloom.diagnostics import PolyloomError
from polyloom.frontends.graph.imported import Ends
from polyloom.frontends.graph.model import Graph
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
        words = [*surroundings(processor, None), repr(replace(graph, constants={}))]
    except (PolyloomError, OSError):
        return None
    key = hashlib.sha256("\0".join(words).encode())
    for name, array in graph.constants.items():
        key.update(f"\0{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return folder / f"{key.hexdigest()[:40]}.graph"


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
        assert variant.ends is not None
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
