"""Mutated programs are read or refused; nothing else happens to them."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c, read_parts
from polyloom.frontends.c.document import document
from samples import one_in

HERE = Path(__file__).parent
TOKEN = re.compile(r"#.*|[A-Za-z_]\w*|\d[\w.]*|\s+|[-+*/%&|^<>=!]=?|\S")
PROGRAMS = [TOKEN.findall(path.read_text()) for path in sorted(HERE.glob("*/*.c"))]
WORDS = sorted({token for program in PROGRAMS for token in program if not token.isspace()})


def mutated(rng: random.Random) -> str:
    tokens = list(rng.choice(PROGRAMS))
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(tokens))
        match rng.randrange(4):
            case 0:
                tokens[at] = rng.choice(WORDS)
            case 1:
                del tokens[at]
            case 2:
                tokens.insert(at, rng.choice(WORDS))
            case _:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)


@pytest.mark.parametrize("seed", one_in(4, range(8)))
def test_mutated_programs(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        text = mutated(rng)
        try:
            read_c(Source("f.c", text))
            for part in read_parts(Source("f.c", text)):
                document(part)
        except PolyloomError as fault:
            assert all(d.helps for d in fault.diagnostics), text
