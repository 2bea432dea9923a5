"""OpenCL's objects in a child that was forked: they are never released.

To release one takes locks of the driver, and to release the last queue waits for its commands. A thread of
the driver that held such a lock, or had still to count a command as done, is not in the child, which would
wait for ever when it ends.
"""

from __future__ import annotations

import ctypes
import gc
import os
from functools import cache


@cache
def never_release_in_children() -> None:
    """Let objects of pyopencl that there are when this process is forked stay as they are in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_hold_all)


def _hold_all() -> None:
    """Hold every object of pyopencl that another object holds, for good."""
    import pyopencl as cl

    kinds = {kind for kind in vars(cl._cl).values() if isinstance(kind, type)}
    frozen = gc.get_freeze_count()
    if frozen:
        gc.unfreeze()
    holders = gc.get_objects()
    if frozen:
        gc.freeze()
    held = {id(inner): inner for inner in gc.get_referents(*holders) if type(inner) in kinds}
    for inner in held.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(inner))
