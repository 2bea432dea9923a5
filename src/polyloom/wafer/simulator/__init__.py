"""The wafer's simulator: machine models, the C that emitted programs include, the discrete-event fabric."""
