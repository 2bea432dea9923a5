"""Nodes of a host program to launches of kernels."""
