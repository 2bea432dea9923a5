"""Md_homs over the same points as one, where they share what they read."""
