"""What frameworks build of core operations alike: layers, losses, optimizers, and their gradients.

Each is written once, over ``graph/operations``; the tables of frameworks say where a node has its arguments.
"""
