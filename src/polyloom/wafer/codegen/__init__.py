"""Tasks to the tree of a PE's program, a file for each kind of work."""
