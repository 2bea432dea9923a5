"""LAIR, the tensor language of the wafer papers: text to program and back.

The parser is in ``polyloom.frontends.lair.syntax.parse``, apart, since it alone needs ``lark``.
Source: dtg_codegen, Sec. 4.1.1.
"""

from polyloom.frontends.lair.from_program import from_program
from polyloom.frontends.lair.lower import choose, lower
from polyloom.frontends.lair.syntax.printer import print_module
from polyloom.frontends.lair.syntax.tree import Module

__all__ = ["Module", "choose", "from_program", "lower", "print_module"]
