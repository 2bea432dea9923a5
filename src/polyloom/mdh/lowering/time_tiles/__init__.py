"""Host loops over time in tiles: blocks of steps, in which trapezoids of rows run at once."""
