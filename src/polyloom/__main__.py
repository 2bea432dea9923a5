"""The command ``polyloom``, and ``python -m polyloom``: no module is taken from the current folder.

Python itself puts the current folder on its path for ``-m`` and for an empty entry of ``PYTHONPATH``. It is
left out before anything else is imported: a file ``copy.py`` that lies there is not ours to run.
"""

import os
import sys


def main() -> None:
    """Run the command line and exit the process."""
    leave_out_current_folder()
    from polyloom.cli.main import main as run

    run()


def leave_out_current_folder() -> None:
    """Take the current folder off Python's path, unless ``PYTHONPATH`` names it in full."""
    try:
        here = os.getcwd()  # noqa: PTH109 - pathlib is not imported yet
    except OSError:  # it was removed
        here = ""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [path for path in sys.path if path[:1] not in ("", ".") and (path != here or path in named)]


if __name__ == "__main__":
    main()
