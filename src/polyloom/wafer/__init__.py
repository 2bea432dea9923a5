"""Placed layers to SIMD code for each processing element of a wafer, and its simulation."""
