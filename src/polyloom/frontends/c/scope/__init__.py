"""What is known at a point of a C function: types, names, conversions, the state of the walk."""
