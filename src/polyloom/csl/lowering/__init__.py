"""Elaborated PE programs as typed trees, and those as C against the simulated wafer's ``csl.h``."""
