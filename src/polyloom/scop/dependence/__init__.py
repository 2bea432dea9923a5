"""Exact dependences between statements, and statements that combine into what they write."""
