"""How far two correct evaluations of a program may differ, element by element."""
