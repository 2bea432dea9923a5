"""Programs of the IR as text for people."""
