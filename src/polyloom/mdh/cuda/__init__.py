"""CUDA devices: found by their driver or named by architecture, compiled for, and run on."""
