"""How each task is done: its domain, its instructions, and what they cost."""
