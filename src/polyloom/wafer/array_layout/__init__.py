"""How local arrays lie in memory, chosen for the SIMD engine."""
