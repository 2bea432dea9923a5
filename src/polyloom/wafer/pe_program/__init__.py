"""The program of a PE as a tree, and its C."""
