"""The proof that arrays of totals are combined as reductions want it."""
