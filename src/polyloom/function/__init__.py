"""Programs of any kind as Python functions, which can be explained, tuned, simulated and saved."""

from __future__ import annotations

from polyloom.function.arguments import Argument
from polyloom.function.functions import Function
from polyloom.function.loading import load

__all__ = ["Argument", "Function", "load"]
