"""Scripts of commands, each run in a copy of the folder with our `cslc` and `cs_python` on its path."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from polyloom.csl.host.commands import environment
from polyloom.diagnostics import PolyloomError, error
from polyloom.files import read_regular
from polyloom.programs import Ended, ProgramFault, run_program

PATTERN = "commands*.sh"
CANNOT_EXPRESS = 3
_LARGEST_SCRIPT = 2**20
_CALL = re.compile(r"^\s*(cslc|cs_python)\b", re.MULTILINE)
_MESSAGE = re.compile(r"^error\[([\w-]+)\]: (.*)$", re.MULTILINE)

_EXCEPTION = re.compile(r"[\w.]*(Error|Exception)\b")


class Outcome(Enum):
    """What became of a script."""

    PASSED = "passed"
    REFUSED = "refused"
    STOPPED = "stopped"
    FAILED = "failed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True)
class Result:
    """A script by its path under the folder; ``reason`` is empty where it passed."""

    script: str
    outcome: Outcome
    reason: str
    seconds: float
    output: str


@dataclass(frozen=True)
class Script:
    """A script's path under the folder, and its text after replacements."""

    path: Path
    text: str


def find_scripts(folder: Path, only: str = "", replacements: Sequence[tuple[str, str]] = ()) -> list[Script]:
    """Return the scripts `commands*.sh` that call `cslc` or `cs_python`, in order of their paths.

    Errors: a PolyloomError `csl-test-nothing` where there is none.
    """
    found = []
    for path in sorted(folder.rglob(PATTERN)):
        text = read_regular(path, _LARGEST_SCRIPT).decode("utf-8", "replace")
        for old, new in replacements:
            text = text.replace(old, new)
        if only in str(path.relative_to(folder)) and _CALL.search(text):
            found.append(Script(path.relative_to(folder), text))
    if not found:
        raise PolyloomError(
            error(
                "csl-test-nothing",
                f"no script `{PATTERN}` under `{folder}` calls `cslc` or `cs_python`"
                + (f" and has `{only}` in its path" if only else ""),
            )
        )
    return found


def run_scripts(
    folder: Path, scripts: Sequence[Script], *, seconds: float, jobs: int, seen: Callable[[Result], None]
) -> Iterator[Result]:
    """Run scripts, ``jobs`` at a time; yield what became of each; ``seen`` hears of each as it ends."""

    def one(script: Script) -> Result:
        result = run_script(folder, script, seconds=seconds)
        seen(result)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, scripts)


def run_script(folder: Path, script: Script, *, seconds: float) -> Result:
    """Run one script in a copy of the folder, where it may write."""
    with tempfile.TemporaryDirectory(prefix="polyloom-csl-") as place:
        work = Path(place) / "folder"
        shutil.copytree(folder, work, symlinks=True, ignore_dangling_symlinks=True)
        _make_writable(work)
        file = work / script.path
        file.write_text(script.text, encoding="utf-8")
        log = Path(place) / "log"
        ours = environment(Path(place), log)
        start = time.monotonic()
        try:
            ended = run_program(
                ["bash", file.name],
                seconds=seconds,
                folder=file.parent,
                environment=ours,
                temporary=Path(place),
            )
        except ProgramFault as fault:
            spent = time.monotonic() - start
            outcome = Outcome.TIMED_OUT if spent >= seconds else Outcome.FAILED
            return Result(str(script.path), outcome, str(fault), spent, "")
        calls = log.read_text().split() if log.exists() else []
        outcome, reason = judge(ended, calls)
        return Result(str(script.path), outcome, reason, time.monotonic() - start, ended.out + ended.err)


def judge(ended: Ended, calls: Sequence[str]) -> tuple[Outcome, str]:
    """Return what became of a script. ``calls``: `COMMAND:STATUS` of each of ours that ended.

    Refused is what our `cslc` refuses with a diagnostic, or what any of ours understood and cannot express;
    stopped what the simulator found a fault in while it ran. A script that runs no host program has tested
    nothing.
    """
    failed = next((call for call in calls if not call.endswith(":0")), None)
    if ended.status == 0:
        if not any(call.startswith("cs_python:") for call in calls):
            return Outcome.FAILED, "it ran no host program"
        if failed is not None:
            return Outcome.FAILED, f"it went on after {failed.replace(':', ' had status ')}"
        return Outcome.PASSED, ""
    message = _MESSAGE.search(ended.err)
    reason = f"{message[2]} [{message[1]}]" if message else _raised(ended.err) or _last_line(ended.out)
    if failed is None:
        return Outcome.FAILED, reason or f"it ended with status {ended.status}"
    command, _, status = failed.partition(":")
    refused = message is not None and ((command == "cslc" and status == "1") or status == str(CANNOT_EXPRESS))
    if refused:
        return Outcome.REFUSED, reason
    stopped = message is not None and message[1].startswith("csl-run-")
    return Outcome.STOPPED if stopped else Outcome.FAILED, reason


def _raised(text: str) -> str:
    """Return what Python says of an exception, on one line; else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    at = next((i for i in reversed(range(len(lines))) if _EXCEPTION.match(lines[i])), len(lines) - 1)
    return " ".join(lines[at : at + 2]) if lines else ""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _make_writable(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            with suppress(OSError):
                path.chmod(path.stat().st_mode | 0o600)
