"""OpenCL devices and their drivers: which there are, and what a schedule must know of them."""
