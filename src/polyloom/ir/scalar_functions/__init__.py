"""One row for each scalar function: all that any part of the compiler knows of it."""
