"""Candidates timed on other machines: workers of a dask cluster that have the device."""
