"""Ctrl-C ends the command within a second, whatever C code it is in.

Python runs its handlers between its own instructions, so that isl, OpenCL or NumPy may keep a process
from hearing Ctrl-C for minutes. The work is therefore done in a child process in a group of its own: the
parent waits, tells the child of the first Ctrl-C, and ends it where it is still there after a while. The
child says which temporary files and folders it makes, and the parent removes those that it had no time
to remove itself.

Not in the papers.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

INTERRUPTED = 130
PATIENCE = 0.6
"""Seconds that the child has for ending by itself."""

_PR_SET_PDEATHSIG = 1


def supervised(work: Callable[[], int]) -> int:
    """Do ``work`` in a child process and return its exit status; in the child, return its own.

    Where there is no ``fork``, or Ctrl-C is ignored, work is done in this process.
    """
    if not hasattr(os, "fork") or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return work()
    reading, writing = os.pipe()
    parent = os.getpid()
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    child = os.fork()
    if child == 0:
        os.close(reading)
        return _as_child(work, writing, parent, signals)
    os.close(writing)
    with suppress(OSError):
        os.setpgid(child, child)
    return _Parent(child, reading).wait(signals)


def _as_child(work: Callable[[], int], writing: int, parent: int, signals: set[signal.Signals]) -> int:
    with suppress(OSError):
        os.setpgid(0, 0)
    _die_with(parent)
    _hear_once()
    sys.addaudithook(_reporting(writing))
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        status = work()
        _hear_no_more()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        status = INTERRUPTED
    return status


class _Interruption:
    """Whether the child was told to end."""

    heard = False


@contextmanager
def insisting() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end where one was raised inside and something else became of it.

    isl makes an error of its own of what its callbacks raise, Python of what ``__set_name__`` raises in a new
    class, and modules of others may catch anything.
    """
    try:
        yield
    except BaseException as fault:
        if _Interruption.heard:
            raise KeyboardInterrupt from fault
        raise
    if _Interruption.heard:
        raise KeyboardInterrupt


def _hear_once() -> None:
    """Raise KeyboardInterrupt at the first Ctrl-C, and let what cleans up after it be.

    Not while a module in C is being imported, which may end the process. What is lost in ``__del__`` is
    raised again.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        _Interruption.heard = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if _is_importing_c(frame):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            raise KeyboardInterrupt

    def lost(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            sys.__unraisablehook__(unraisable)

    def uncaught(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
        if kind is not KeyboardInterrupt:  # that of a callback, which islpy would print
            sys.__excepthook__(kind, fault, trace)

    signal.signal(signal.SIGALRM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = lost
    sys.excepthook = uncaught


_AGAIN = 0.005
"""Seconds until an interruption that could not be raised is raised again."""


def _hear_no_more() -> None:
    for number in (signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def _is_importing_c(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_qualname.startswith("ExtensionFileLoader."):
        frame = frame.f_back
    return frame is not None


def _die_with(parent: int) -> None:
    """Let the system end this process when its parent is gone, where it can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(INTERRUPTED)


def _reporting(writing: int) -> Callable[[str, tuple[Any, ...]], None]:
    """Return a hook that writes the path of each temporary file and folder."""
    os.set_blocking(writing, False)
    own = os.getpid()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("tempfile.mkdtemp", "tempfile.mkstemp") and os.getpid() == own:
            path = os.path.realpath(os.fsdecode(arguments[0]))
            with suppress(OSError):
                os.write(writing, os.fsencode(path) + b"\0")

    return hook


class _Parent:
    """Waits for the child; ``interrupted``: whether it was told to end."""

    def __init__(self, child: int, reading: int) -> None:
        self.child = child
        self.reading = reading
        self.interrupted = False
        self.reported = b""

    def wait(self, signals: set[signal.Signals]) -> int:
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGALRM, self._kill)
        signal.signal(signal.SIGTSTP, self._stop)
        for number in signals - {signal.SIGINT}:
            signal.signal(number, self._pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        self._listen()
        _, status = os.waitpid(self.child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self.interrupted or os.WIFSIGNALED(status):
            with suppress(OSError):
                os.killpg(self.child, signal.SIGKILL)
            _remove(os.fsdecode(path) for path in self.reported.split(b"\0") if path)
        if not os.WIFSIGNALED(status):
            return os.waitstatus_to_exitcode(status)
        if self.interrupted:
            sys.stderr.write("interrupted\n")
            return INTERRUPTED
        return _same_end(os.WTERMSIG(status))

    def _listen(self) -> None:
        """Collect what the child reports until it is gone."""
        while True:
            ready, _, _ = select.select([self.reading], [], [], 1.0)
            part = os.read(self.reading, 65536) if ready else b""
            self.reported += part
            if not part and (ready or self._has_ended()):
                return

    def _has_ended(self) -> bool:
        """Whether the child is gone though others, which it left behind, still hold the pipe."""
        return os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
        with suppress(OSError):
            os.kill(self.child, signal.SIGINT)
        signal.signal(signal.SIGINT, self._kill)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)

    def _kill(self, number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            os.kill(self.child, signal.SIGKILL)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            os.kill(self.child, number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Stop with the child, and go on with it."""
        os.killpg(self.child, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.killpg(self.child, signal.SIGCONT)


def _remove(paths: Iterable[str]) -> None:
    """Remove temporary files and folders that are still there under their first names."""
    from polyloom.caches import remove_folder

    for path in map(Path, paths):
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)
        else:
            with suppress(OSError):
                path.unlink()


def _same_end(number: int) -> int:
    """End this process by the signal that ended the child."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
