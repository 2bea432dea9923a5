"""Loops and conditions from isl as code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from polyloom.polyhedra.loops.generate import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Tree,
    operation_count,
    rename_iterator,
)
from polyloom.polyhedra.loops.tree import leaves_in
from polyloom.wafer.pe_program.tree import Code, Cost, For, If, Node

InstanceCode = Callable[[Sequence[IntExpression]], Code]
"""Makes the code of one instance from the coordinates of its domain."""

DATA = "data"
"""The variable that holds the arriving element."""


def tree_code(tree: Tree, instance: Mapping[str, InstanceCode]) -> Code:
    """Turn loops from isl into code; ``instance[name]`` makes the code of one instance from its arguments."""
    nodes: list[Node] = []
    for item in tree:
        match item:
            case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
                overhead = Cost(iterations=1, operations=max(0, operation_count(condition) - 1))
                inner = (overhead, *tree_code(body, instance))
                if operation_count(start):
                    nodes.append(Cost(operations=operation_count(start)))
                nodes.append(For(iterator=iterator, start=start, condition=condition, step=step, body=inner))
            case Branch(condition=condition, body=body, otherwise=otherwise):
                nodes.append(Cost(operations=operation_count(condition), branches=1))
                nodes.append(If(condition, tree_code(body, instance), tree_code(otherwise, instance)))
            case Instance(statement=statement, arguments=arguments):
                nodes += instance[statement](arguments)
    return tuple(nodes)


def named_loops(tree: Tree, names: Sequence[str]) -> Tree:
    """Give loops over a dimension of the instances its name, where they are loops over nothing else."""
    for k, name in enumerate(names):
        found = {instance.arguments[k] for instance in leaves_in(tree)}
        match list(found):
            case [Name(name=iterator)]:
                tree = rename_iterator(tree, iterator, name)
    return tree
