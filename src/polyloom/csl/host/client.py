"""`SdkCompiler`, `SdkLauncher` and `SdkRuntime` of `cerebras.sdk.client`, on this computer and its simulator.

Source: the public SDK's documentation of programs that run on an appliance, and its public examples. This is
not the vendor's product: names and behaviour are reproduced, nothing is sent anywhere.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from polyloom.csl.host.commands import environment
from polyloom.csl.host.runtime import SdkRuntime
from polyloom.diagnostics import PolyloomError, error
from polyloom.files import read_regular
from polyloom.programs import Ended, ProgramFault, run_program

NOTE = "artifact.json"
"""In an artifact, beside the files of the program: where its compiled program is."""
LONGEST = 24 * 3600.0
"""Seconds that a command may take."""
_LARGEST = 2**16


class _Context:
    """A `with` block; what it is given about the appliance changes nothing."""

    def __init__(self, **options: Any) -> None:
        del options

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        """Do nothing."""


class SdkCompiler(_Context):
    """Compiles programs into artifacts: folders with a program's files and what `cslc` makes of them."""

    def compile(self, app_path: str, csl_main: str, options: str = "", out_path: str = ".") -> str:
        """Compile the layout ``csl_main`` of the folder ``app_path``; return the path of the artifact.

        ``options``: the command line of `cslc`, as one text. Errors: `csl-host-compile`.
        """
        words = shlex.split(options)
        source = Path(app_path)
        if not (source / csl_main).is_file():
            _refuse(f"there is no file `{source / csl_main}`", [], "name the folder, and the layout in it")
        artifact = Path(out_path) / f"cs_{_digest(source, [csl_main, *words])}"
        if (artifact / NOTE).is_file():
            shutil.rmtree(artifact)
        with tempfile.TemporaryDirectory(prefix="polyloom-csl-") as place:
            work = Path(place) / "app"
            shutil.copytree(source, work, ignore=_artifacts)
            ended = _run(["cslc", csl_main, *words], work, Path(place))
            if ended.status:
                _refuse("`cslc` refuses the program", ended.err.splitlines(), "correct the program")
            (work / NOTE).write_text(json.dumps({"output": _output(words)}) + "\n")
            artifact.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(work, artifact)
        return str(artifact)


class SdkLauncher(_Context):
    """Runs commands in a copy of an artifact, with our `cs_python` and `cslc` among them."""

    def __init__(self, artifact_path: str, *, simulator: bool = False, **options: Any) -> None:
        """Name the artifact. Errors: `csl-host-machine` without ``simulator``."""
        super().__init__(**options)
        _check_simulator(simulator)
        self._artifact = artifact_path
        self._place: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        _output_of(self._artifact)
        self._place = tempfile.TemporaryDirectory(prefix="polyloom-csl-")
        shutil.copytree(self._artifact, self._work)
        self._environment = environment(Path(self._place.name))
        return self

    def __exit__(self, *ended: object) -> None:
        """Remove the copy."""
        if self._place is not None:
            self._place.cleanup()

    @property
    def _work(self) -> Path:
        assert self._place is not None, "use `with SdkLauncher(...) as launcher`"
        return Path(self._place.name) / "app"

    def stage(self, path: str) -> None:
        """Copy a file or a folder there."""
        source = Path(path)
        target = self._work / source.name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)

    def run(self, *commands: str) -> str:
        """Run commands of the shell, one after another; return what they print.

        Errors: `csl-host-command` where one fails.
        """
        printed = []
        for command in commands:
            ended = _program(["bash", "-c", command], self._work, self._environment)
            printed.append(ended.out)
            if ended.status:
                raise PolyloomError(
                    error(
                        "csl-host-command",
                        f"`{command}` ended with status {ended.status}",
                        notes=ended.err.splitlines()[-8:],
                        helps=["run it in a copy of the artifact to see all that it prints"],
                    )
                )
        return "".join(printed)

    def download_artifact(self, name: str, out_path: str) -> None:
        """Copy a file that a command has left."""
        Path(out_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._work / name, out_path)


class ClientRuntime(SdkRuntime):
    """`SdkRuntime` over an artifact."""

    def __init__(self, artifact_path: str, *, simulator: bool = False, **options: Any) -> None:
        """Open an artifact. Errors: `csl-host-machine` without ``simulator``, `csl-host-folder`."""
        _check_simulator(simulator)
        super().__init__(Path(artifact_path) / _output_of(artifact_path))


def _check_simulator(simulator: bool) -> None:
    if not simulator:
        raise PolyloomError(
            error(
                "csl-host-machine",
                "the host program asks for a machine, but Polyloom runs programs on its simulator only",
                helps=["say `simulator=True`; public examples do so with `--simulator`"],
            )
        )


def _refuse(message: str, notes: Sequence[str], help_: str) -> None:
    raise PolyloomError(error("csl-host-compile", message, notes=list(notes), helps=[help_]))


def _run(words: Sequence[str], folder: Path, place: Path) -> Ended:
    made = environment(place)
    return _program([str(place / "bin" / words[0]), *words[1:]], folder, made)


def _program(words: Sequence[str], folder: Path, made: dict[str, str]) -> Ended:
    try:
        return run_program(words, seconds=LONGEST, folder=folder, environment=made, temporary=folder.parent)
    except ProgramFault as fault:
        raise PolyloomError(
            error("csl-host-command", f"`{words[-1]}`: {fault}", helps=["run it by hand to see why"])
        ) from None


def _output(words: Sequence[str]) -> str:
    """Return the folder that `-o` of `cslc` names."""
    found = "out"
    for k, word in enumerate(words):
        if word == "-o" and k + 1 < len(words):
            found = words[k + 1]
        elif word.startswith("-o"):
            found = word[2:].removeprefix("=")
    return found


def _output_of(artifact: str) -> str:
    """Return where an artifact holds the compiled program. Errors: `csl-host-folder`."""
    try:
        return str(json.loads(read_regular(Path(artifact) / NOTE, _LARGEST))["output"])
    except (PolyloomError, ValueError, KeyError, TypeError):
        raise PolyloomError(
            error(
                "csl-host-folder",
                f"`{artifact}` is no artifact",
                helps=["`SdkCompiler().compile(...)` of this version makes one and returns its path"],
            )
        ) from None


def _artifacts(folder: str, names: list[str]) -> set[str]:
    """Return what of a folder is not copied: artifacts."""
    return {name for name in names if (Path(folder) / name / NOTE).is_file()}


def _digest(folder: Path, words: Sequence[str]) -> str:
    """Return what tells an artifact from others: files of the program and options."""
    known = hashlib.sha256("\0".join(words).encode())
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        held = any((folder / parent / NOTE).is_file() for parent in inside.parents if parent.name)
        if path.is_file() and not held:
            known.update(str(inside).encode() + b"\0" + path.read_bytes())
    return known.hexdigest()[:16]
