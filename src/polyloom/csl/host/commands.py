"""Our `cslc` and `cs_python` on the path of other programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SHIMS = {"cslc": "cslc", "cs_python": "cs-python"}
"""Commands, and the verbs that serve them."""


def environment(place: Path, log: Path | None = None) -> dict[str, str]:
    """Return an environment in which our commands come first; they lie in a new folder ``bin`` of ``place``.

    ``log``: a file that gets `COMMAND:STATUS` for each that ended.
    """
    shims = place / "bin"
    shims.mkdir()
    note = "" if log is None else f'echo "{{name}}:$status" >> "{log}"\n'
    for name, verb in SHIMS.items():
        shim = shims / name
        call = f'"{sys.executable}" -P -m polyloom {verb} "$@"'
        shim.write_text(
            f"#!/bin/sh\n{call}\nstatus=$?\n{note.replace('{name}', name)}exit $status\n", encoding="utf-8"
        )
        shim.chmod(0o755)
    path = os.pathsep.join([str(shims), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"}
