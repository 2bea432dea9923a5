"""Roles put together: what runs before what, proved free of deadlock; resources; the emitted files."""
