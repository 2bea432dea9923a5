"""An emitted program on the simulated wafer: run, checked, compared with a lower bound."""
