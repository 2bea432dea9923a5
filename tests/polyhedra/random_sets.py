"""Random parametric sets that are known twice: as isl text, and as a predicate that isl has no part in."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from random import Random

import islpy as isl

PARAMETERS = ("p", "q")
VALUES = range(-1, 3)
SIDE = 5
Point = tuple[int, ...]


@dataclass(frozen=True)
class Condition:
    """A sum over variables and parameters, plus a constant, is >= 0, = 0, or divisible by ``modulus``."""

    coefficients: Point
    constant: int
    kind: str
    modulus: int = 0

    def holds(self, values: Point) -> bool:
        total = sum(c * v for c, v in zip(self.coefficients, values, strict=True)) + self.constant
        if self.kind == "mod":
            return total % self.modulus == 0
        return total == 0 if self.kind == "=" else total >= 0

    def text(self, names: list[str]) -> str:
        terms = [f"{c}*{n}" for c, n in zip(self.coefficients, names, strict=True) if c]
        sum_ = " + ".join([*terms, str(self.constant)])
        if self.kind == "mod":
            return f"({sum_}) mod {self.modulus} = 0"
        return f"{sum_} {'=' if self.kind == '=' else '>='} 0"


@dataclass(frozen=True)
class RandomSet:
    """The union over ``disjuncts`` of the points of a box that satisfy all conditions of one."""

    rank: int
    disjuncts: tuple[tuple[Condition, ...], ...]

    def names(self) -> list[str]:
        return [f"x{k}" for k in range(self.rank)]

    def points(self, parameters: Point) -> list[Point]:
        """By trying out every point of the box."""
        box = itertools.product(range(SIDE), repeat=self.rank)
        return [x for x in box if any(all(c.holds(x + parameters) for c in d) for d in self.disjuncts)]

    def all_points(self) -> dict[Point, list[Point]]:
        """For the values of the parameters at which there are points."""
        found = {v: self.points(v) for v in itertools.product(VALUES, repeat=len(PARAMETERS))}
        return {values: points for values, points in found.items() if points}

    def isl(self) -> isl.Set:
        names = self.names()
        box = [f"0 <= {x} < {SIDE}" for x in names]
        box += [f"{VALUES.start} <= {p} < {VALUES.stop}" for p in PARAMETERS]
        every = [*names, *PARAMETERS]
        parts = [" and ".join([*box, *(c.text(every) for c in d)]) for d in self.disjuncts]
        body = "; ".join(f"S[{', '.join(names)}] : {part}" for part in parts)
        return isl.Set(f"[{', '.join(PARAMETERS)}] -> {{ {body} }}")


def random_set(seed: int, most: int = 3) -> RandomSet:
    """Make the set of a seed, of at most ``most`` dimensions: often with equalities and strides."""
    random = Random(seed)
    rank = random.randint(1, most)
    shared = [_condition(random, rank, "=") for _ in range(random.choice([0, 1, 1, 2]))]
    shared += [_condition(random, rank, "mod") for _ in range(random.choice([0, 0, 1, 1]))]
    disjuncts = []
    for _ in range(random.choice([1, 1, 1, 2])):
        own = [_condition(random, rank, ">=") for _ in range(random.randint(0, 2))]
        own += [_condition(random, rank, "mod") for _ in range(random.choice([0, 0, 0, 1]))]
        disjuncts.append((*shared, *own))
    return RandomSet(rank, tuple(disjuncts))


def _condition(random: Random, rank: int, kind: str) -> Condition:
    pool = [0, 1, 1, -1, -1, 2, -2] if kind == "=" else [0, 0, 1, 1, -1, 2]
    variables = [random.choice(pool) for _ in range(rank)]
    if not any(variables):
        variables[random.randrange(rank)] = random.choice([1, 2])
    parameters = [random.choice([0, 0, 1, -1, 2]) for _ in PARAMETERS]
    constant = random.randint(-2, 4)
    return Condition((*variables, *parameters), constant, kind, random.choice([2, 3]) if kind == "mod" else 0)


def fixed(points: isl.Set, values: Point) -> isl.Set:
    """The set at given values of its parameters, which disappear. A parameter that it lacks is no matter."""
    for name, value in zip(PARAMETERS, values, strict=True):
        position = points.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            points = points.fix_val(isl.dim_type.param, position, isl.Val(value))
            points = points.project_out(isl.dim_type.param, position, 1)
    return points
