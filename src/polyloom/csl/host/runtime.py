"""`SdkRuntime` on the simulated wafer, under the names that host programs use.

Source: the API reference of the public SDK, and what its public examples ask for. This is not the vendor's
product: names and behaviour are reproduced, nothing of it is contained.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyloom.csl.compiled import Exported, Symbol
from polyloom.csl.host.folder import open_folder
from polyloom.csl.host.opening import machine_of, note_last_run
from polyloom.csl.host.program import Built
from polyloom.csl.host.session import Request, Session
from polyloom.csl.host.tensors import Region, Words, check_destination, fill, from_bytes, to_bytes, words_of
from polyloom.diagnostics import PolyloomError, error
from polyloom.files import refusing_unwritable


class MemcpyDataType(Enum):
    """How many bits of each 32-bit element of a host array are copied."""

    MEMCPY_16BIT = 0
    MEMCPY_32BIT = 1


class MemcpyOrder(Enum):
    """In which order a host array holds rows, columns and elements."""

    ROW_MAJOR = 0
    COL_MAJOR = 1


class SdkCompileArtifacts:
    """A folder that `cslc`, or a layout's `compile`, left."""

    def __init__(
        self, artifacts_path: str | Path, initial: tuple[tuple[tuple[int, int], str, bytes], ...] = ()
    ) -> None:
        """Name the folder. ``initial``: what lies in globals of PEs at the start, by PE and name."""
        self.artifacts_path = str(artifacts_path)
        self.initial = initial


_BITS = {MemcpyDataType.MEMCPY_16BIT: 16, MemcpyDataType.MEMCPY_32BIT: 32}


class SdkRuntime:
    """A compiled program on the simulated wafer.

    Errors: diagnostics where a name, a rectangle or an array does not fit, where the program does something
    wrong, and where nothing can move although something is waited for.
    """

    def __init__(
        self, bindir: str | Path | SdkCompileArtifacts, platform: Any = None, **options: Any
    ) -> None:
        """Open the folder of a compiled program.

        ``cmaddr`` must name no machine; other options change nothing.
        """
        if options.get("cmaddr"):
            raise PolyloomError(
                error(
                    "csl-host-machine",
                    f"`cmaddr` is '{options['cmaddr']}', but Polyloom runs programs on its simulator only",
                    helps=["leave `--cmaddr` out, or run the program with the vendor's SDK"],
                )
            )
        folder = bindir.artifacts_path if isinstance(bindir, SdkCompileArtifacts) else bindir
        self._initial = bindir.initial if isinstance(bindir, SdkCompileArtifacts) else ()
        self._folder = Path(folder)
        self._built: Built = open_folder(self._folder)
        self._session: Session | None = None
        self._running = False

    def __enter__(self) -> SdkRuntime:
        """Load and run."""
        self.load()
        self.run()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, unless something went wrong before."""
        if kind is None:
            self.stop()

    def load(self) -> None:
        """Put the program on the wafer."""
        self._session = Session(self._built.program, machine_of(self._built))
        for (x, y), name, data in self._initial:
            symbol = global_of(self._built, x, y, name)
            self._session.machine.write(x, y, symbol.address, data)

    def run(self) -> None:
        """Let the program start."""
        self._need_loaded("run")
        self._running = True

    def stop(self) -> None:
        """End all that was asked for and let the program come to rest.

        Errors: a diagnostic where data is left.
        """
        session = self._need_running("stop")
        try:
            session.finish()
        finally:
            _write_log(session.machine.log())
        self._running = False
        note_last_run(self._folder, self._built, session)

    def get_id(self, symbol: str) -> int:
        """Return the number that stands for an exported name in copies."""
        for number, exported in enumerate(self._built.program.exports):
            if exported.name == symbol:
                return number
        Session(self._built.program, None).pointer(symbol)  # type: ignore[arg-type]  # only to raise its diagnostic
        raise AssertionError

    get_symbol = get_id

    def memcpy_h2d(
        self, dest: int, src: Any, px: int, py: int, w: int, h: int, elem_per_pe: int, **options: Any
    ) -> Request:
        """Copy or stream an array to a rectangle of PEs."""
        region, by_column, bits, streaming = self._read(options, px, py, w, h, elem_per_pe)
        words = words_of(src, region, by_column=by_column).copy()
        return self._in(dest, region, words, bits, streaming, options)

    def memcpy_h2d_rowbcast(
        self, dest: int, src: Any, px: int, py: int, w: int, h: int, elem_per_pe: int, **options: Any
    ) -> Request:
        """As `memcpy_h2d`, with one PE's elements for each row: all of a row get the same."""
        region, by_column, bits, streaming = self._read(options, px, py, w, h, elem_per_pe)
        one = Region(px, py, 1, h, elem_per_pe)
        words = np.repeat(words_of(src, one, by_column=by_column), w, axis=1)
        return self._in(dest, region, words, bits, streaming, options)

    def memcpy_h2d_colbcast(
        self, dest: int, src: Any, px: int, py: int, w: int, h: int, elem_per_pe: int, **options: Any
    ) -> Request:
        """As `memcpy_h2d`, with one PE's elements for each column: all of a column get the same."""
        region, by_column, bits, streaming = self._read(options, px, py, w, h, elem_per_pe)
        one = Region(px, py, w, 1, elem_per_pe)
        words = np.repeat(words_of(src, one, by_column=by_column), h, axis=0)
        return self._in(dest, region, words, bits, streaming, options)

    def memcpy_d2h(
        self, dest: Any, src: int, px: int, py: int, w: int, h: int, elem_per_pe: int, **options: Any
    ) -> Request:
        """Copy or stream from a rectangle of PEs to an array."""
        session = self._need_running("memcpy_d2h")
        region, by_column, bits, streaming = self._read(options, px, py, w, h, elem_per_pe)
        check_destination(dest, region)

        def deliver(words: Words) -> None:
            fill(dest, words, region, by_column=by_column)

        if streaming:
            request = session.stream_out(src, region, deliver)
        else:
            request = session.copy_out(self._name(src), region, deliver, bits)
        return session.submit(request, blocking=not options.get("nonblock", False))

    def launch(self, symbol: str, *arguments: Any, nonblock: bool = False) -> Request:
        """Launch an exported function on all PEs, with the same arguments."""
        session = self._need_running("launch")
        exported = session.function(symbol)
        if len(arguments) != len(exported.parameters):
            raise _arguments(exported, f"{len(arguments)} arguments were given")
        words = [
            _word(exported, type_name, value)
            for type_name, value in zip(exported.parameters, arguments, strict=True)
        ]
        return session.submit(session.launch(symbol, words), blocking=not nonblock)

    def call(
        self, symbol: str, params: Sequence[int] | npt.NDArray[Any] = (), nonblock: bool = False
    ) -> Request:
        """Launch an exported function with arguments that are 32-bit words."""
        session = self._need_running("call")
        words = [
            int(np.asarray(p).astype(np.uint32)) if not isinstance(p, np.generic) else _bits(p)
            for p in params
        ]
        return session.submit(session.launch(symbol, words), blocking=not nonblock)

    def send(self, stream: HostStream, data: npt.NDArray[Any], nonblock: bool = False) -> Request:
        """Send elements to a stream of a layout, one a word."""
        session = self._need_running("send")
        words = _stream_words(data)
        region = Region(*stream.place, 1, 1, words.size)
        request = session.stream_in(stream.color, region, words.reshape(1, 1, -1))
        return session.submit(request, blocking=not nonblock)

    def receive(
        self, stream: HostStream, data: npt.NDArray[Any], size: int, nonblock: bool = False
    ) -> Request:
        """Receive ``size`` elements from a stream of a layout, one a word."""
        session = self._need_running("receive")
        region = Region(*stream.place, 1, 1, int(size))
        _stream_words(data)

        def deliver(words: Words) -> None:
            flat = data.reshape(-1)
            flat[:size] = from_words(words.reshape(-1), flat.dtype)

        request = session.stream_out(stream.color, region, deliver)
        return session.submit(request, blocking=not nonblock)

    def task_wait(self, task: Request) -> None:
        """Return when what was asked for has ended."""
        self._need_running("task_wait").wait(task)

    def is_task_done(self, task: Request) -> bool:
        """Return whether what was asked for has ended."""
        return task.ended

    def dump_core(self, corefile: str | Path = "corefile.cs1") -> None:
        """Keep the wafer's memory for `debug_util` of this process; ``corefile`` is not written."""
        note_last_run(self._folder, self._built, self._need_loaded("dump_core"))

    def read_symbol(self, column: int, row: int, symbol: str, dtype: Any = None) -> npt.NDArray[Any]:
        """Return a global of the PE at this place of the fabric, as its own type or as ``dtype``."""
        session = self._need_loaded("read_symbol")
        return read_global(self._built, session, column, row, symbol, dtype)

    def coord_logical_to_physical(self, coordinates: tuple[int, int]) -> tuple[int, int]:
        """Return the place on the fabric of a PE of the program."""
        x, y = self._built.fabric_offset
        return coordinates[0] + x, coordinates[1] + y

    def coord_physical_to_logical(self, coordinates: tuple[int, int]) -> tuple[int, int]:
        """Return the place in the program of a PE of the fabric."""
        x, y = self._built.fabric_offset
        return coordinates[0] - x, coordinates[1] - y

    def _in(
        self, dest: int, region: Region, words: Words, bits: int, streaming: bool, options: dict[str, Any]
    ) -> Request:
        session = self._need_running("memcpy_h2d")
        if streaming:
            request = session.stream_in(dest, region, words)
        else:
            request = session.copy_in(self._name(dest), region, words, bits)
        return session.submit(request, blocking=not options.get("nonblock", False))

    def _read(
        self, options: dict[str, Any], px: int, py: int, w: int, h: int, elements: int
    ) -> tuple[Region, bool, int, bool]:
        region = Region(int(px), int(py), int(w), int(h), int(elements))
        order = options.get("order", MemcpyOrder.ROW_MAJOR)
        bits = _BITS[options.get("data_type", MemcpyDataType.MEMCPY_32BIT)]
        return region, order == MemcpyOrder.COL_MAJOR, bits, bool(options.get("streaming", False))

    def _name(self, number: int) -> str:
        exports = self._built.program.exports
        if not 0 <= number < len(exports):
            raise PolyloomError(
                error(
                    "csl-host-name",
                    f"{number} stands for no exported name",
                    helps=[
                        "`get_id` gives the number of a name; a color's number goes with `streaming=True`"
                    ],
                )
            )
        return exports[number].name

    def _need_loaded(self, what: str) -> Session:
        if self._session is None:
            raise _too_early(what, "load")
        return self._session

    def _need_running(self, what: str) -> Session:
        session = self._need_loaded(what)
        if not self._running:
            raise _too_early(what, "run")
        return session


SIM_LOG = Path("sim.log")
"""What programs printed, in the current folder."""


def _write_log(lines: Sequence[str]) -> None:
    """Write what programs printed, unless they printed nothing."""
    if lines:
        with refusing_unwritable(SIM_LOG):
            SIM_LOG.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


class HostStream(Protocol):
    """A stream of a layout: the PE and the color that the host feeds or drains."""

    @property
    def place(self) -> tuple[int, int]:
        """The PE."""

    @property
    def color(self) -> int:
        """The color's number."""


def _stream_words(data: npt.NDArray[Any]) -> Words:
    """Return elements of 16 or 32 bits as words. Errors: `csl-host-array`."""
    flat = np.ascontiguousarray(data).reshape(-1)
    if flat.dtype.itemsize not in (2, 4):
        raise PolyloomError(
            error("csl-host-array", f"a stream has elements of 16 or 32 bits, not {flat.dtype}")
        )
    return from_bytes(flat.tobytes(), 8 * flat.dtype.itemsize)


def from_words(words: Words, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return words, or their low halves, as elements."""
    return np.frombuffer(to_bytes(words, 8 * dtype.itemsize), dtype)


def global_of(built: Built, x: int, y: int, name: str) -> Symbol:
    """Return a global of a PE of the program. Errors: `csl-host-name`."""
    symbol = built.program.variable(x, y, name)
    if symbol is None:
        raise PolyloomError(error("csl-host-name", f"the program of PE ({x}, {y}) has no global `{name}`"))
    return symbol


def read_global(
    built: Built, session: Session, column: int, row: int, name: str, dtype: Any
) -> npt.NDArray[Any]:
    """Return a global's elements; the place is one of the fabric.

    Errors: `csl-host-name`, `csl-host-region`.
    """
    x, y = column - built.fabric_offset[0], row - built.fabric_offset[1]
    Region(x, y, 1, 1, 1).check_inside(built.program.width, built.program.height)
    symbol = global_of(built, x, y, name)
    own = _NUMPY.get(symbol.element, np.dtype(np.uint16))
    return np.frombuffer(session.read(x, y, symbol), own if dtype is None else np.dtype(dtype)).copy()


_NUMPY: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    **{f"{s}{bits}": np.dtype(f"{s}{bits // 8}") for s in "iu" for bits in (8, 16, 32, 64)},
}


def _too_early(what: str, before: str) -> PolyloomError:
    return PolyloomError(error("csl-host-order", f"`{what}` was called before `{before}`"))


def _arguments(exported: Exported, found: str) -> PolyloomError:
    takes = ", ".join(exported.parameters) or "none"
    return PolyloomError(error("csl-host-arguments", f"{found} to `{exported.name}`, which takes {takes}"))


def _bits(value: np.generic) -> int:
    """Return a NumPy scalar's bits as an unsigned number."""
    return int.from_bytes(value.tobytes(), "little")


_FORMATS = {
    "f16": "<e",
    "f32": "<f",
    "i16": "<h",
    "u16": "<H",
    "i32": "<i",
    "u32": "<I",
    "i8": "<b",
    "u8": "<B",
}


def _word(exported: Exported, type_name: str, value: Any) -> int:
    """Return an argument as the function gets it; a NumPy scalar must have the parameter's type."""
    kind = _FORMATS.get(type_name)
    if kind is None:
        raise _arguments(exported, f"an argument of type {type_name} cannot be handed")
    if isinstance(value, np.generic) and value.dtype != _NUMPY[type_name]:
        raise _arguments(exported, f"an argument of type {value.dtype} was given")
    try:
        return int.from_bytes(struct.pack(kind, value), "little")
    except (struct.error, OverflowError, TypeError):
        raise _arguments(exported, f"the argument {value!r} was given") from None
