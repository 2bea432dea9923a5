"""What is done once, when constants are bound: parts of scalar functions, nodes, copies."""
