"""C, restricted to static control parts: text to the polyhedral model.

Nothing here imports ``pycparser`` or ``pcpp`` before a C file is read.
Source: md_poly, Sec. 3.2.1.
"""
