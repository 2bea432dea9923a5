"""The host of a CSL program: the compiler's command line and folder, copies, streams and launches."""
