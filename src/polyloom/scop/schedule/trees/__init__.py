"""Schedule trees in isl's text: of our plans, and of users, checked against the dependences."""
