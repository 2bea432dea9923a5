"""What programs of the IR mean, in NumPy: the evaluators, and their inputs."""
