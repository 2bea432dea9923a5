"""What the matrix unit of a warp does in a kernel tree."""
