"""Vector loops in C: their statements, what is kept in registers, blocks that are turned, wide moves."""
