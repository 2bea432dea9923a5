"""Commands in documents, and what they print: blocks marked `console`, each command behind `$ `.

`...` stands for any text within a line, and for any lines where it stands alone. A test runs the README's.
Usage: python benchmarks/transcripts.py FILE prints every command with what it prints now.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 300
"""Seconds that a command may take."""


@dataclass(frozen=True)
class Step:
    """A command of a document, and the text below it."""

    command: str
    printed: str


def steps(document: str) -> Iterator[Step]:
    """Yield the commands of a Markdown text in order."""
    for block in re.findall(r"^```console\n(.*?)^```$", document, flags=re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield Step(command, plain(printed))


def matches(wanted: str, found: str) -> bool:
    """Return whether a text is what a document says."""
    lines = ["(?:.*\\n)*" if line.strip() == "..." else _pattern(line) for line in wanted.split("\n")]
    return re.fullmatch("".join(lines), f"{found}\n") is not None


def _pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.split("..."))) + "\n"


def plain(text: str) -> str:
    """Return a text without blanks at the ends of lines and lines without text at its ends."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder where `examples` lies, with this interpreter's `polyloom`."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "LC_ALL": "C.UTF-8"}
    shell = ["bash", "-o", "pipefail", "-c", command]
    merged = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(shell, cwd=folder, env=environment, text=True, timeout=LIMIT, check=False, **merged)


def furnish(folder: Path) -> None:
    """Make a folder look to commands like a clone of the repository."""
    (folder / "examples").symlink_to(ROOT / "examples")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        furnish(Path(name))
        for step in steps(Path(sys.argv[1]).read_text()):
            print(f"$ {step.command}\n{plain(run(step.command, Path(name)).stdout)}")


if __name__ == "__main__":
    main()
