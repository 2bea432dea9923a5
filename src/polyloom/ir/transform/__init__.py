"""Passes: a program of the IR to a better one that means the same."""
