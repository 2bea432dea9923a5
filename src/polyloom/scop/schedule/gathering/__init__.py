"""Statements that share values of an iteration, brought together in one node."""
