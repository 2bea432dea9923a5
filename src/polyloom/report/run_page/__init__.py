"""A run on the processor or an OpenCL device as one HTML page, without scripts that it needs."""

from polyloom.report.run_page.page import run_page, write_run_report

__all__ = ["run_page", "write_run_report"]
