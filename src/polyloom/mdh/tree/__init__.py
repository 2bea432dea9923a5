"""The kernel tree: what a kernel does, as loops, loads and stores that passes rewrite and printers print."""
