"""Tensor programs as host programs, and back; a program taken apart into its layers."""
