"""How CSL programs look to a person."""
