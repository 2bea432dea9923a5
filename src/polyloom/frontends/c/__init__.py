"""C, restricted to static control parts: text to the polyhedral model.

Import it where a C file is read and not before: it needs ``pcpp`` and ``pycparser``.
Source: md_poly, Sec. 3.2.1.
"""

from polyloom.frontends.c.read import read_c, read_computed, read_parts

__all__ = ["read_c", "read_computed", "read_parts"]
