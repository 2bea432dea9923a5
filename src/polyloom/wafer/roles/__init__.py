"""Classes of PEs that run one program, and what such a program is collected in."""
