"""Where the loops of a program went: which loops of its tree go through the points of an iterator."""
