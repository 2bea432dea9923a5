"""Folders of CSL programs with their own commands, all run, and what became of each."""
