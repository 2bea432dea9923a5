"""Expressions of C as expressions of the IR, and lvalues as places in memory."""
