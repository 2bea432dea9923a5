"""Integer expressions of C as quasi-affine functions: subscripts, extents, sizes."""
