"""Directives of OpenMP: which of them a static control part may hold.

A part runs as the text does without them, in the thread that comes to it. So ``parallel for`` may stand in
one: OpenMP means the same by it. ``for`` alone shares a loop among threads that all come to it, each of which
would run the whole part; so may ``atomic`` be meant for other threads than those of a loop of the part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from pycparser import c_ast

_WORD = re.compile(
    "parallel|for|simd|loop|sections?|single|master|masked|scope|critical|atomic|barrier|task|taskloop"
    "|taskgroup|taskwait|taskyield|ordered|target|teams|distribute|cancel|flush|tile|unroll"
)
_OF_THEIR_LOOP = frozenset(
    {
        ("parallel", "for"),
        ("parallel", "for", "simd"),
        ("parallel", "loop"),
        ("simd",),
        ("tile",),
        ("unroll",),
    }
)
"""Directives of a loop that whoever comes to it runs, once."""
_OF_ITS_THREADS = frozenset({("atomic",), ("critical",), ("ordered",)})
"""Directives that keep the threads of such a loop apart."""
_OF_ITS_FORM = re.compile(r"\b(collapse|ordered|simd|tile|unroll|loop)\b")


def directive(node: c_ast.Node | None) -> tuple[str, ...]:
    """Return the words of an OpenMP directive, without its clauses; none of other nodes.

    Of ``declare`` and the like, which say nothing of who runs what, there are none.
    """
    if not isinstance(node, c_ast.Pragma):
        return ()
    first, *words = re.findall(r"\w+|\S", node.string) or [""]
    return tuple(takewhile(_WORD.fullmatch, words)) if first == "omp" else ()


def shared_among_threads(nodes: Sequence[c_ast.Node], *, in_loop: bool = False) -> c_ast.Pragma | None:
    """Return the first directive with which a part would mean something else; None: there is none."""
    before: c_ast.Node | None = None
    for node in nodes:
        words = directive(node)
        if words and words not in _OF_THEIR_LOOP and not (in_loop and words in _OF_ITS_THREADS):
            return node
        inside = in_loop or directive(before)[:1] == ("parallel",)
        children = [child for _, child in node.children()]
        blocks = [children] if isinstance(node, c_ast.Compound) else [[child] for child in children]
        for block in blocks:
            if (found := shared_among_threads(block, in_loop=inside)) is not None:
                return found
        before = node
    return None


def keeps_its_form(before: c_ast.Node | None) -> bool:
    """Whether a directive asks that the loop behind it stays as it is, with the loops inside it."""
    if not isinstance(before, c_ast.Pragma) or not directive(before):
        return False
    return _OF_ITS_FORM.search(before.string) is not None
