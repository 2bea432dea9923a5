"""What a placement is expected to cost: estimates without sets, and prices of compiled code."""
