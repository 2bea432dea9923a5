"""Functions that emitted C brings along, as text: those of vectors that neither C nor its library has."""
