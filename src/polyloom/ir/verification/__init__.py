"""The rules of the IR, checked between passes, and results compared with a reference."""
