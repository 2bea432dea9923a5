"""Programs verified between passes: at the end always, after each pass in tests and under ``--debug``.

A program that breaks a rule of the IR raises ``InvalidProgram``, naming the pass: a fault of Polyloom, which
the command line reports as one. It is never run.

A pass says ``after_pass("fusion", program)``; the end of a pipeline ``at_the_end("a loop nest", program)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from polyloom.ir.host import HostProgram
from polyloom.ir.verification.programs import InvalidProgram, verify

_Verified = TypeVar("_Verified", bound=HostProgram)


class _Switch:
    """Whether programs are verified after each pass."""

    on: bool = False


@contextmanager
def verified() -> Iterator[None]:
    """Verify programs after each pass inside."""
    before = _Switch.on
    _Switch.on = True
    try:
        yield
    finally:
        _Switch.on = before


def is_on() -> bool:
    """Whether programs are verified after each pass."""
    return _Switch.on


def after_pass(name: str, program: _Verified) -> _Verified:
    """Return the program; verify it where that is switched on. Raises InvalidProgram, naming the pass."""
    return at_the_end(name, program) if _Switch.on else program


def at_the_end(name: str, program: _Verified) -> _Verified:
    """Return the program, verified: that takes a hundredth of what making it took.

    Raises InvalidProgram, naming the last pass.
    """
    try:
        verify(program)
    except InvalidProgram as fault:
        raise InvalidProgram(f"after {name}: {fault}") from fault
    return program
