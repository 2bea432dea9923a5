"""What reports show of a compiled layer: the grid, the routes, the task graph, samples of instance sets.

Reports look at single PEs and points, which the compiler itself never does.
"""
