"""Kernel trees of one node as OpenCL kernels and their launches."""
