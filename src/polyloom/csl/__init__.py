"""Programs in CSL, the language of the wafer's public SDK: read, checked, compiled to C and simulated."""
