"""Adapters: border rows and columns of PEs that turn data between the ports and the inside."""
