"""The command ``polyloom``. Nothing else is imported before Ctrl-C is handled."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from polyloom.cli.supervise import INTERRUPTED, insisting, supervised


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    sys.exit(supervised(lambda: run(given)))


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit status."""
    try:
        with insisting():
            from polyloom.cli.command import run as run_verb
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    return run_verb(arguments)
