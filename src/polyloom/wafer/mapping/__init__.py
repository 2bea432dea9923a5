"""A LAIR map: read, and checked against the layer."""
