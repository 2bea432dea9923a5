"""Compiled layers as CSL: one file for each role of PE, the layout, PEs for the ports, and a host program."""
