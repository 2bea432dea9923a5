"""Kernel trees and scalar functions as text: one printer, whose dialects are OpenCL C and C."""
