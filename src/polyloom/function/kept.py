"""Functions of models, kept in the cache folder: another process need not read, lower and build them again.

A file holds what ``Function.save`` writes, but for its source, and for weights that stand in the files of the
model as they are in memory: of these it has the places. Its name is a digest of all that decides about its
content: the model's bytes, how they are read, Polyloom's own modules, the compiler, the processor, the number
of threads, and the results of tuning. Files beside a model (external data) go by their digests inside. A file
that is damaged, or of other files beside the model, is as none.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from polyloom.caches import cache_folder, is_writable
from polyloom.diagnostics import PolyloomError, error
from polyloom.files import read_regular
from polyloom.function.container import write_container
from polyloom.function.functions import Function
from polyloom.function.saved import SavedFunction
from polyloom.function.saving import Variant, contents, opened, reading_document, variants_of
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native import build
from polyloom.mdh.native.device import NativeDevice, native_device
from polyloom.mdh.schedule.signature import digest_of
from polyloom.mdh.tuning.choose import results_path
from polyloom.sources import Given, Loaded, LoadedHost, Reading, is_path
from polyloom.sources.front_end import ModelFrontEnd, path_of

if TYPE_CHECKING:
    from polyloom.mdh.tuning.tune import Tuned

NDArray = npt.NDArray[Any]

WORTH_SECONDS = 0.5
"""What was made in less time is not kept."""

LARGEST_MODEL = 2**32
"""Bytes of a model's files, which are in memory twice while it is kept."""

ALL_KEPT = 2**32
"""Bytes of all that is kept; what was not used for longest goes first."""

_SMALL = 4096
"""Bytes of weights that are stored wherever they stand."""

_BEGINNING = 512
"""Bytes of weights that are looked for."""

_TRIES = 64
"""How many places are looked at that begin alike."""


@dataclass(frozen=True)
class Place:
    """Where the function of a source is kept, or will be; ``source``: the digest of the model's bytes."""

    path: Path
    given: Given
    reading: Reading
    device: NativeDevice
    source: str

    def function(
        self, content: bytes, opened_whole: Callable[[Loaded | LoadedHost], CompiledProgram]
    ) -> Function | None:
        """Return the function that is kept; None where there is none that is whole.

        ``content``: the model's bytes, whose digest is ``source``.
        """
        if not self.path.exists():
            return None
        try:
            container = opened(self.path)
            about = container.manifest["kept"]
            beside = [read_regular(Path(name)) for name, _ in about["beside"]]
            if list(map(_digest, beside)) != [digest for _, digest in about["beside"]]:
                return None
            (variant,) = variants_of(container)
            variant.weights = {**variant.weights, **_found(about["weights"], [content, *beside])}
            with suppress(OSError):
                self.path.touch()
            return _KeptFunction(self, container, variant, opened_whole)
        except (PolyloomError, OSError, KeyError, TypeError, ValueError, MemoryError):
            return None

    def keep(self, function: Function, beside: Sequence[Path]) -> None:
        """Keep a function that was called; nothing is said where that cannot be done.

        ``beside``: the files that were read with the model.
        """
        with suppress(PolyloomError, OSError, MemoryError):
            held = [_bytes(self.given), *map(read_regular, beside)]
            if _digest(held[0]) != self.source or sum(map(len, held)) > LARGEST_MODEL:
                return
            saved = function._saved(())
            places: dict[str, Any] = {}
            for variant in saved.variants:
                places |= _places(variant.weights, held)
                variant.weights = {n: a for n, a in variant.weights.items() if n not in places}
            named = [
                [str(path.absolute()), _digest(data)] for path, data in zip(beside, held[1:], strict=True)
            ]
            manifest, members = contents(saved, None)
            make_room(self.path.parent)
            write_container(self.path, {**manifest, "kept": {"beside": named, "weights": places}}, members)


@dataclass(frozen=True)
class Keeper:
    """Keeps a function after its first call, where it is worth it.

    ``read``: the files that were read for it; ``seconds``: that this took.
    """

    place: Place
    read: Sequence[Path]
    seconds: float

    def __call__(self, function: Function, seconds: float) -> None:
        """Keep a function whose first call took some seconds."""
        if self.seconds + seconds >= WORTH_SECONDS:
            own = path_of(self.place.given) if is_path(self.place.given) else None
            self.place.keep(function, [path for path in self.read if path != own])


class _KeptFunction(SavedFunction):
    """A function that was kept, of a source that is still there."""

    def __init__(
        self,
        place: Place,
        container: Any,
        variant: Variant,
        whole: Callable[[Loaded | LoadedHost], CompiledProgram],
    ) -> None:
        super().__init__(container, variant, place.device, whole, {})
        self._place, self._reading = place, place.reading

    @cached_property
    def _source(self) -> Given:  # type: ignore[override]
        """Where it was read from. Errors: ``source-changed``; ``file-...``."""
        place = self._place
        if _digest(_bytes(place.given)) != place.source:
            message = f"`{place.given}` is not the file any more that was loaded"
            raise PolyloomError(error("source-changed", message, helps=["load it again"]))
        return place.given

    def tune(
        self, budget: float = 60.0, inputs: Mapping[str, Any] | None = None, **options: Any
    ) -> tuple[Tuned, ...]:
        """Search for faster schedules, as ``Function.tune``; later calls use them."""
        found = super().tune(budget, inputs, **options)
        self.__dict__["compiled"] = self._whole
        self._remember(None)
        return found


def place_of(
    given: Given,
    front: object,
    reading: Reading,
    device: str | None,
    threads: int | None,
    database: Path | None,
) -> tuple[Place, bytes] | None:
    """Return where the function of a model is kept, and the model's bytes; None for what is not kept.

    Kept are models that are one file or bytes, with files beside it, where they run on the processor.
    """
    if not isinstance(front, ModelFrontEnd) or not (is_path(given) or isinstance(given, bytes)):
        return None
    folder = cache_folder() / "functions"
    try:
        processor = native_device(device, threads)
        if processor is None or reading.examples or not is_writable(folder):
            return None
        content = _bytes(given)
        source = _digest(content)
        words = [
            source,
            front.name,
            "" if isinstance(given, bytes) else path_of(given).name,
            json.dumps(reading_document(reading), sort_keys=True),
            *surroundings(processor, database),
        ]
    except (PolyloomError, OSError, MemoryError):
        return None
    key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:40]
    return Place(folder / f"{key}.function", given, reading, processor, source), content


def surroundings(processor: NativeDevice, database: Path | None) -> list[str]:
    """Return what functions depend on beside their model. Errors: OSError; ``database-...``."""
    model = json.dumps(processor.model.json(), sort_keys=True)
    return [_version(), model, *build.identity(processor.compiler), *build.FLAGS, _tuned(database)]


def _bytes(given: Given) -> bytes:
    """Return a model's bytes. Errors: ``file-...``."""
    return given if isinstance(given, bytes) else read_regular(path_of(given))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@cache
def _version() -> str:
    """Return what functions depend on beside what is given: Polyloom itself, Python and NumPy."""
    return f"{digest_of(files('polyloom'), ('',))} {platform.python_version()} {np.__version__}"


def _tuned(database: Path | None) -> str:
    """Return a digest of the results of tuning. Errors: OSError; ``database-...``."""
    path = results_path(database)
    return "" if path is None else _digest(path.read_bytes())


def _places(weights: Mapping[str, NDArray], held: Sequence[bytes]) -> dict[str, Any]:
    """Return those weights that stand in files as they are: the file, where they begin, type and shape."""
    found = {}
    last = [0] * len(held)
    for name, array in weights.items():
        if array.nbytes < _SMALL or array.dtype.byteorder == ">":
            continue
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for k, content in enumerate(held):
            at = _place(data, content, last[k])
            if at is not None:
                last[k] = at + data.size
                found[name] = [k, at, array.dtype.name, list(array.shape)]
                break
    return found


def _place(data: NDArray, content: bytes, begin: int) -> int | None:
    """Return where bytes stand in others; looked for from ``begin`` on, then from the first."""
    first = data[:_BEGINNING].tobytes()
    for low, high in ((begin, len(content)), (0, begin + _BEGINNING)):
        at = low - 1
        for _ in range(_TRIES):
            at = content.find(first, at + 1, high)
            if at < 0 or at + data.size > len(content):
                break
            if np.array_equal(np.frombuffer(content, np.uint8, data.size, at), data):
                return at
    return None


def _found(places: Mapping[str, Any], held: Sequence[bytes]) -> dict[str, NDArray]:
    """Return the weights that stand in files. Errors: KeyError, TypeError, ValueError."""
    found = {}
    for name, (k, at, kind, shape) in places.items():
        count = int(np.prod(shape, dtype=np.int64))
        found[name] = np.frombuffer(held[k], np.dtype(kind), count, at).reshape(shape)
    return found


def make_room(folder: Path) -> None:
    """Remove what nobody has used for long, and more where all is too large."""
    about = sorted(((p.stat().st_mtime, p.stat().st_size, p) for p in folder.iterdir()), reverse=True)
    size = 0
    for at, own, path in about:
        size += own
        if at < time.time() - build.KEPT_SECONDS or size > ALL_KEPT:
            path.unlink(missing_ok=True)
