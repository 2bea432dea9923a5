"""A host program, run unchanged as `cs_python` would run it."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from polyloom.csl.host.modules import sdk_modules
from polyloom.diagnostics import PolyloomError, error

_HELP = "give the Python file of the host program; options of ours stand before it"


def run_script(script: Path, arguments: Sequence[str]) -> int:
    """Run a Python file with arguments and return its exit status.

    What it raises is printed as Python prints it, from its own lines on. Errors: a PolyloomError that it
    did not catch.
    """
    if not script.is_file():
        raise PolyloomError(error("csl-host-script", f"there is no file `{script}`", helps=[_HELP]))
    before, modules = (sys.argv, sys.path), set(sys.modules)
    sys.argv = [str(script), *arguments]
    sys.path = [str(script.resolve().parent), *sys.path]
    try:
        with sdk_modules():
            runpy.run_path(str(script), run_name="__main__")
    except PolyloomError:
        raise
    except SystemExit as left:
        return _status(left.code)
    except Exception as fault:
        _print_from(fault, script)
        return 1
    finally:
        sys.argv, sys.path = before
        _forget(set(sys.modules) - modules, script.resolve().parent)
    return 0


def _forget(names: set[str], folder: Path) -> None:
    """Forget modules of a folder, so that the next host program of this process imports its own."""
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).parent == folder:
            del sys.modules[name]


def _status(code: object) -> int:
    """Return what Python makes of the argument of `sys.exit`."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _print_from(fault: Exception, script: Path) -> None:
    """Print a fault's trace without the frames before the script's own."""
    frame = fault.__traceback__
    while frame is not None and Path(frame.tb_frame.f_code.co_filename).name != script.name:
        frame = frame.tb_next
    traceback.print_exception(type(fault), fault, frame or fault.__traceback__)
