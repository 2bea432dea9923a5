"""A C program whose loops run on OpenCL, as a folder of files that a C compiler builds."""
