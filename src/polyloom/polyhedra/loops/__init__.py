"""Loops that visit a set: made by isl or read off its constraints, and proved to visit it."""
