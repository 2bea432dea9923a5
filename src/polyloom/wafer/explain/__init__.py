"""Stages of the analysis as documents and tables: what ``explain`` and the report show."""
