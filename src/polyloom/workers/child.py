"""A child process that may crash or hang, in a driver or a kernel, and is replaced then.

The parent sends pickled calls over the child's stdin and reads pickled answers from its stdout. Between them
the child names the stage that it enters (``start``, ``build``, ``run``, ...), for each of which the parent
has a limit in seconds; a child that oversteps it is killed. The next call starts a new one. A child does not
outlive its parent (``child_main``), nor do its temporary files, which lie in a folder of the parent's.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polyloom
from polyloom.caches import remove_folder, temporary_folder
from polyloom.diagnostics import Diagnostic, PolyloomError, Unsupported
from polyloom.programs import python_module, signal_name

HEADER = 8
"""Bytes that hold the length of a pickled message."""

EXIT_SECONDS = 5.0
"""Seconds in which a child that was asked to end does so."""


@dataclass(frozen=True)
class Job:
    """What a child does: ``factory`` (``module:name``) is called with ``argument``, and gives the object
    whose methods are called. A method's first argument is a function that takes the name of a stage.
    """

    factory: str
    argument: Any


class Died(Exception):
    """The child ended during a call; the text says how, and what it last wrote to stderr."""


class Overdue(Exception):
    """The child took longer than a stage may, and was killed."""


@dataclass(frozen=True)
class Fault:
    """A ``PolyloomError`` or another exception in the child, as it travels."""

    diagnostics: tuple[Diagnostic, ...]
    unsupported: bool
    text: str

    def exception(self) -> Exception:
        """Return the exception to raise in the parent."""
        if self.diagnostics:
            return (Unsupported if self.unsupported else PolyloomError)(*self.diagnostics)
        return RuntimeError(self.text)


class Worker:
    """One child at a time, started when it is needed."""

    def __init__(self, job: Job, limits: Mapping[str, float]) -> None:
        """``limits``: seconds for each stage; ``start`` is that of the factory, ``""`` of any other."""
        self._job = job
        self._limits = dict(limits)
        self._child: _Child | None = None
        self.starts = 0
        self.ready = False
        """Whether a child was ever started to the end of its factory."""

    def call(self, method: str, *arguments: Any, limits: Mapping[str, float] | None = None) -> Any:
        """Return what the method gives, in the child that is there or a new one.

        Raises ``Died``, ``Overdue``, and what the method or the factory raises.
        """
        child = self._started()
        child.send((method, arguments))
        return self._answer(child, {**self._limits, **(limits or {})})

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _started(self) -> _Child:
        if self._child is None:
            self.starts += 1
            self._child = _Child()
            self._child.send(self._job)
            self._answer(self._child, {"": self._limits["start"]})
            self.ready = True
        return self._child

    def _answer(self, child: _Child, limits: Mapping[str, float]) -> Any:
        try:
            return child.answer(limits)
        except (Died, Overdue, KeyboardInterrupt):
            child.kill()
            self._child = None
            raise


class _Child:
    """The process, and a thread that reads what it answers."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=temporary_folder()))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
        command = [*python_module("polyloom.workers.child_main"), str(os.getpid())]
        own_group = {"process_group": 0} if os.name == "posix" else {}
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(_search_path()),
                "TMPDIR": str(self._folder),
            },
            **own_group,  # type: ignore[call-overload]
        )
        self._answers: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Any) -> None:
        with suppress(OSError):  # if it is dead, the missing answer will tell
            write_message(self._process.stdin, message)

    def answer(self, limits: Mapping[str, float]) -> Any:
        limit = limits.get("", 60.0)
        stage = ""
        while True:
            try:
                answer = self._answers.get(timeout=limit)
            except queue.Empty:
                raise Overdue(f"longer than {limit:.3g} s{' for ' + stage if stage else ''}") from None
            if answer is None:
                raise Died(self._how_it_died(stage))
            kind, value = answer
            if kind == "result":
                return value
            if kind == "fault":
                raise value.exception()
            stage, limit = value, limits.get(value, limits.get("", 60.0))

    def end(self) -> None:
        with suppress(OSError, subprocess.TimeoutExpired):
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(EXIT_SECONDS)
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._errors):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        remove_folder(self._folder)

    def _read(self) -> None:
        with suppress(Exception):  # half a message, and then the end
            while (message := read_message(self._process.stdout)) is not None:
                self._answers.put(message)
        self._answers.put(None)

    def _how_it_died(self, stage: str) -> str:
        code = self._wait()
        how = f"exit status {code}" if code >= 0 else signal_name(-code)
        last = self._last_line()
        return f"the process died ({how}){' during ' + stage if stage else ''}{': ' + last if last else ''}"

    def _wait(self) -> int:
        try:
            return int(self._process.wait(EXIT_SECONDS))
        except subprocess.TimeoutExpired:
            return 0

    def _last_line(self) -> str:
        size = os.fstat(self._errors.fileno()).st_size
        self._errors.seek(max(0, size - 2000))
        lines = self._errors.read().decode("utf-8", errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip() and not line.startswith(("#", " "))]
        return said[-1][:200] if said else ""


def _search_path() -> list[str]:
    """Return where the child finds modules: as this process, but for the current folder.

    Polyloom itself may lie there; then it comes last, behind Python's own modules.
    """
    here = Path.cwd()
    own = Path(polyloom.__file__).resolve().parents[1]
    return [*(path for path in sys.path if path and Path(path).resolve() != here), str(own)]


def write_message(pipe: IO[bytes] | None, message: Any) -> None:
    """Write one message to a pipe."""
    assert pipe is not None
    data = pickle.dumps(message)
    pipe.write(len(data).to_bytes(HEADER, "little") + data)
    pipe.flush()


def read_message(pipe: IO[bytes] | None) -> Any:
    """Return the next message of a pipe; None at its end."""
    assert pipe is not None
    header = pipe.read(HEADER)
    if len(header) < HEADER:
        return None
    return pickle.loads(pipe.read(int.from_bytes(header, "little")))
