"""What a placement is expected to cost: guesses without sets, and prices of compiled code."""
