"""``%%sh`` as in any notebook, but all output at once, as a pipe gets it, and no error passed over."""

import os
import subprocess

from IPython.core.magic import register_cell_magic

_COLOURED = ("FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "PY_COLORS")


@register_cell_magic
def sh(_: str, cell: str) -> None:
    """Run a cell in a shell. Raises CalledProcessError where a command fails."""
    plain = {name: value for name, value in os.environ.items() if name not in _COLOURED}
    command = ["sh", "-e", "-c", cell]
    done = subprocess.run(
        command, env=plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(done.stdout, end="")
    done.check_returncode()
