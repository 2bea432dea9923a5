"""Products of halves as kernel trees in which matrix units work."""
