"""A lowered host program on a device: kernels built, arrays moved, results checked."""
