"""What divides places in arrays, against brute force; that only such places are moved at once."""

from __future__ import annotations

import itertools
from random import Random

from polyloom.mdh.tree.ranges import multiple
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation


def made(rng: Random, depth: int) -> IntExpression:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([Name("i"), Name("j"), Number(rng.choice([0, 1, 2, 4, 6, 12, -8]))])
    operator = rng.choice(["+", "-", "*", "min", "max", "%", "?", "/"])
    operands = tuple(made(rng, depth - 1) for _ in range(3 if operator == "?" else 2))
    if operator in ("%", "/"):
        operands = (operands[0], Number(rng.choice([2, 3, 8])))
    return Operation(operator, operands)


def value(e: IntExpression, names: dict[str, int]) -> int:
    match e:
        case Number(value=found):
            return found
        case Name(name=name):
            return names[name]
        case Operation(operator=operator, operands=operands):
            a, *rest = (value(operand, names) for operand in operands)
            match operator:
                case "+":
                    return a + rest[0]
                case "-":
                    return a - rest[0]
                case "*":
                    return a * rest[0]
                case "min" | "max":
                    return (min if operator == "min" else max)(a, rest[0])
                case "%":
                    return abs(a) % rest[0] * (1 if a >= 0 else -1)  # as C has it
                case "/":
                    return int(a / rest[0])
                case _:
                    return rest[0] if a else rest[1]


def test_a_multiple_divides_all_values() -> None:
    for seed in range(300):
        rng = Random(seed)
        expression, known = made(rng, 3), {"i": rng.choice([1, 4]), "j": rng.choice([1, 2, 6])}
        found = multiple(expression, known)
        for i, j in itertools.product(range(-3, 4), repeat=2):
            number = value(expression, {"i": i * known["i"], "j": j * known["j"]})
            assert number == 0 if found == 0 else number % found == 0, expression


def test_it_is_not_always_one() -> None:
    place = Operation("+", (Operation("*", (Number(65), Name("l"))), Operation("*", (Number(32), Name("j")))))
    assert multiple(place, {"l": 4}) == 4
    assert multiple(place, {"l": 1}) == 1
