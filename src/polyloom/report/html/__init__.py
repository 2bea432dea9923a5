"""The report of a simulation as one HTML page that needs nothing else: no network, no other file."""

from polyloom.report.html.page import page_text, write_report

__all__ = ["page_text", "write_report"]
