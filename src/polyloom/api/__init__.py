"""The verbs of the command line as Python functions on NumPy arrays; ``import polyloom`` offers them."""
