"""Typed trees as C: types, text, costs, and the memory that goes with it."""
