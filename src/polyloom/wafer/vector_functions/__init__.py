"""Functions that the machine has no instruction for, as sequences of instructions that it has."""
