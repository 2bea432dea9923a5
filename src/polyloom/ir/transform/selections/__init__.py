"""Sums in which data select the one term that counts."""
