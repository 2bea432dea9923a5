"""Limits on what isl spends on a question. No question goes to isl without one.

Counted in isl's own operations, not in seconds: the same question is given up on every machine, or on none. A
million takes a quarter of a second, or a few seconds where numbers get long.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, ClassVar, ParamSpec, TypeVar

import islpy as isl

from polyloom.diagnostics import Span, Unsupported, error

_P = ParamSpec("_P")
_T = TypeVar("_T")


class TooHardError(Exception):
    """isl did more operations than allowed; the text is the question, ``span`` what it is about."""

    def __init__(self, question: str, span: Span | None = None) -> None:
        super().__init__(question)
        self.span = span


class _Limits:
    """``stack``: at how many operations each scope ends, outermost first.

    ``outside``: the limit where there is no scope, 0 for none; ``charged``: operations of answers that were
    known, by which scopes end earlier; ``counting``: operations that counting took; ``counted``: what was
    counted last.
    """

    stack: tuple[int, ...] = ()
    outside: int = 0
    charged: int = 0
    counting: int = 0
    counted: int = 0


@contextmanager
def at_most(operations: int, question: str = "isl") -> Iterator[None]:
    """Let isl do so many operations inside. Raises TooHardError, naming the question, where it takes more.

    Inside another such scope, only what that one has left. Without operations left, some of isl's functions
    raise, and some return None, printing among them: what follows from that is any exception, or none.
    """
    around = _Limits.stack
    limit = min(around[-1], _counted() + operations) if around else operations
    _Limits.stack = (*around, limit)
    if not around:
        _reset()
        _Limits.charged = 0
    isl.DEFAULT_CONTEXT.set_max_operations(limit)
    try:
        yield
        if _exhausted():
            raise TooHardError(question)
    except TooHardError:
        raise
    except Exception as fault:
        if _exhausted():
            raise TooHardError(question) from fault
        raise
    finally:
        _Limits.stack = around = _Limits.stack[:-1]
        isl.DEFAULT_CONTEXT.set_max_operations(around[-1] if around else _Limits.outside)
        if not around:
            _reset()
            if _Limits.outside:
                _exhausted()


@contextmanager
def apart() -> Iterator[None]:
    """Let the scopes inside have what they say, whatever those around have left, which pay nothing for it.

    For each of several tasks that have nothing to do with one another.
    """
    around, charged = _Limits.stack, _Limits.charged
    counted = _counted() if around else 0
    _Limits.stack = ()
    isl.DEFAULT_CONTEXT.set_max_operations(_Limits.outside)
    try:
        yield
    finally:
        _reset()
        _Limits.charged = charged + counted
        _Limits.stack = tuple(max(1, limit - counted) for limit in around)
        isl.DEFAULT_CONTEXT.set_max_operations(_Limits.stack[-1] if around else _Limits.outside)


@contextmanager
def naming(question: str, span: Span | None = None) -> Iterator[None]:
    """Say what is asked inside, for when a scope around has no operations left. Raises TooHardError then."""
    try:
        yield
    except TooHardError:
        raise
    except Exception as fault:
        if _exhausted():
            raise TooHardError(question, span) from fault
        raise
    if _exhausted():
        raise TooHardError(question, span)


@contextmanager
def refusing(question: str, operations: int = 0, span: Span | None = None) -> Iterator[None]:
    """Do the same where there is nothing to fall back to; without a number, as a whole command may take.

    Errors: ``Unsupported`` with ``isl-effort``; inside another scope TooHardError, for whoever opened that.
    """
    inside = bool(_Limits.stack)
    try:
        with at_most(operations or WHOLE, question):
            yield
    except TooHardError as fault:
        if inside:
            raise
        message = f"it takes too long to find {fault}"
        notes = [f"isl was given up on after {operations or WHOLE:,} of its operations"]
        helps = ["simplify bounds, subscripts or the map, or divide the program"]
        where = fault.span or span
        raise Unsupported(error("isl-effort", message, where, notes=notes, helps=helps)) from fault


WHOLE = 4_000_000_000
"""What isl may spend on one command, or one call of the API: a quarter of an hour."""


def limited(question: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Let a function ask isl so much as a whole command may, at each call. Errors: those of ``refusing``."""

    def decorated(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(function)
        def bounded(*arguments: _P.args, **named: _P.kwargs) -> _T:
            with refusing(question):
                return function(*arguments, **named)

        return bounded

    return decorated


@contextmanager
def none_outside() -> Iterator[None]:
    """Let isl do nothing where no scope is open: a test that every question has its limit."""
    before = _Limits.outside
    _Limits.outside = 1
    isl.DEFAULT_CONTEXT.set_max_operations(_Limits.stack[-1] if _Limits.stack else 1)
    try:
        _exhausted()
        yield
    finally:
        _Limits.outside = before
        isl.DEFAULT_CONTEXT.set_max_operations(_Limits.stack[-1] if _Limits.stack else before)


def spent() -> int:
    """Return how many operations were spent since the outermost scope began, known answers included."""
    return _counted() + _Limits.charged


def _reset() -> None:
    isl.DEFAULT_CONTEXT.reset_operations()
    _Limits.counted = 0


def _counted() -> int:
    """Return how many operations isl has done itself: it tells no one, but whether a number is reached.

    Looked for from the last count upwards: between two questions there are few. It may be less by ``_PROBE``.
    """
    low, step = _Limits.counted, 64
    while _reached(low + step):
        low, step = low + step, 4 * step
    high = low + step
    while high - low > _PROBE:
        middle = (low + high) // 2
        low, high = (middle, high) if _reached(middle) else (low, middle)
    isl.DEFAULT_CONTEXT.set_max_operations(_Limits.stack[-1] if _Limits.stack else _Limits.outside)
    _Limits.counted = low
    return high


def _reached(operations: int) -> bool:
    """Tell whether isl has done so many operations: then it prints nothing. To raise is slow."""
    isl.DEFAULT_CONTEXT.set_max_operations(operations)
    if _PRINTED.to_str() is None:
        return True
    _Limits.counting += _PROBE
    return False


_PRINTED, _PROBE = isl.Val(2), 2
"""What is printed to find out, and the operations that printing it takes."""


def _exhausted() -> bool:
    """Tell whether isl has used up its operations."""
    try:
        isl.Val(2)
    except isl.Error:
        return True
    _Limits.counting += 1
    return False


def charge(operations: int) -> None:
    """Let the open scopes end so many operations earlier, as if isl had done them."""
    _Limits.charged += operations
    _Limits.stack = tuple(max(1, limit - operations) for limit in _Limits.stack)
    if _Limits.stack:
        isl.DEFAULT_CONTEXT.set_max_operations(_Limits.stack[-1])


class _Answers:
    """``known``: operations and answer, by question; ``kept``: whether they are looked up, and kept."""

    known: ClassVar[dict[Hashable, tuple[int, object]]] = {}
    kept: bool = False


MOST_ANSWERS = 20_000
"""Answers that a process keeps; then it begins again."""


@contextmanager
def keeping_answers() -> Iterator[None]:
    """Let functions that are ``remembered`` ask isl once only: where the same sets come up again and again.

    An answer that is known counts as many operations as finding it took, so that what is given up on does not
    depend on what was asked before.
    """
    before, _Answers.kept = _Answers.kept, True
    try:
        yield
    finally:
        _Answers.kept = before


def keeps_answers() -> bool:
    """Tell whether functions that are ``remembered`` ask isl once only."""
    return _Answers.kept and bool(_Limits.stack)


def remembered(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Keep a function's answers inside ``keeping_answers``.

    Its arguments are values: of isl, of frozen dataclasses, numbers, texts, sequences and mappings of these.
    """

    @wraps(function)
    def asked(*arguments: _P.args, **named: _P.kwargs) -> _T:
        if not keeps_answers():
            return function(*arguments, **named)
        question = (function, _key(arguments), _key(named))
        known = _Answers.known.get(question)
        if known is not None:
            charge(known[0])
            return known[1]  # type: ignore[return-value]
        counting, before = _Limits.counting, spent()
        answer = function(*arguments, **named)
        if len(_Answers.known) >= MOST_ANSWERS:
            _Answers.known.clear()
        operations = spent() - before
        charge(counting - _Limits.counting)
        _Answers.known[question] = operations, answer
        return answer

    return asked


def _key(argument: object) -> Hashable:
    """Return a value as a key of a dictionary, those of isl as text: hashed or compared, they are changed.

    They mean the same afterwards, but isl may find more out about them than it would have.
    """
    kind = type(argument)
    if kind not in _KEYS:
        _KEYS[kind] = _key_maker(argument)
    return _KEYS[kind](argument)


def _key_maker(example: object) -> Callable[[Any], Hashable]:
    """Return what makes keys of values of one type."""
    match example:
        case isl.Set() | isl.Map() | isl.UnionMap() | isl.PwAff() | isl.Aff() | isl.MultiAff():
            return type(example).to_str
        case list() | tuple():
            return lambda several: tuple(map(_key, several))
        case Mapping():
            return lambda pairs: tuple((name, _key(value)) for name, value in pairs.items())
        case _ if is_dataclass(example):
            kind, names = type(example), tuple(f.name for f in fields(example))
            return lambda whole: (kind, *(_key(getattr(whole, name)) for name in names))
        case _:
            assert isinstance(example, Hashable)
            return lambda plain: plain


_KEYS: dict[type, Callable[[Any], Hashable]] = {}
"""How keys are made of values, by their type."""
