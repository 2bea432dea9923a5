"""Host programs to OpenCL: schedules, kernels, tuning, running, drop-ins."""
