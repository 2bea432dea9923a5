"""Rows of a program on several devices and workers at a time: a plan by measured times, and its runs."""
