"""Loops that stay sequential, in vectors: linear recurrences."""
