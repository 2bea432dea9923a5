"""Md_homs in pieces in which subscripts that wrap around, or stop at an end, are affine."""
