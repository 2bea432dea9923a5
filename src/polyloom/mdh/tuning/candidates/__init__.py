"""Candidates of a search on the devices that there are: built, run once, their results read back."""
