"""Programs on the processor: C built by the compiler at hand, run by one team of threads."""
