"""From dependences to a plan: which loops run on the host, which nodes are parallel, and why."""
