"""Each wrong map gives the diagnostics of its golden file: ``bad/x.map`` and ``bad/x.err``.

The first line of a map names its layer, in ``bad`` or among the examples: ``# lair: ff.lair M=32 N=16``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.diagnostics import PolyloomError, Severity, Source, render
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program
from polyloom.pipeline import analyse_layer, compile_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.simd.decision import SimdOptions
from random_tests import tried

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]
BAD = sorted((HERE / "bad").glob("*.map"))
EXAMPLES = ROOT / "examples"


@cache
def layer(name: str, *defines: str) -> Program:
    path = HERE / "bad" / name
    text = (path if path.exists() else EXAMPLES / name).read_text()
    values = dict(define.split("=") for define in defines)
    return lower(parse(Source(name, text)), None, values)


def layer_of(text: str) -> Program:
    header = re.match(r"# lair: (.*)\n", text)
    assert header, "the first line names the layer: `# lair: conv1d.lair`"
    return layer(*header.group(1).split())


@cache
def outcome(name: str, text: str) -> PolyloomError | None:
    """Compile a layer under a map; return what was refused. Remarks are warnings of a legal map."""
    try:
        program = layer_of(text)
        analysis = analyse_layer(program, read_mapping(Source(name, text), program), SimdOptions())
        compile_layer(analysis, load_machine("cs2"))
    except PolyloomError as refused:
        return refused
    return PolyloomError(*analysis.remarks) if analysis.remarks else None


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_diagnostics(path: Path, golden: Callable[[Path, str], None]) -> None:
    refused = outcome(path.name, path.read_text())
    assert refused is not None, "the map is right"
    texts = [render(diagnostic) for diagnostic in refused.diagnostics]
    golden(path.with_suffix(".err"), f"exit status {status(refused)}\n" + "\n\n".join(texts) + "\n")


def status(refused: PolyloomError) -> int:
    remarks_only = all(d.severity is not Severity.ERROR for d in refused.diagnostics)
    return 0 if remarks_only else refused.exit_status


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_every_error_says_where_and_what_to_do(path: Path) -> None:
    refused = outcome(path.name, path.read_text())
    assert refused is not None
    for diagnostic in refused.diagnostics:
        assert diagnostic.span is not None, diagnostic
        assert diagnostic.helps or diagnostic.severity is Severity.REMARK, diagnostic
        assert diagnostic.severity is Severity.REMARK or diagnostic.span.source.name == path.name


def test_no_golden_without_its_file() -> None:
    assert {p.stem for p in (HERE / "bad").glob("*.err")} == {p.stem for p in BAD}


SAID_IN_C_ONLY = {"wafer-type", "wafer-function"}
"""No LAIR layer brings them about: ``test_expressible.py``."""

PROVED_AWAY = {"wafer-deadlock", "wafer-nest"}
"""The order that units keep rules the first out; ``test_deadlock.py`` breaks the order. Arrays are laid out
so that the second does not come up; ``test_array_layout.py`` lays them out otherwise."""


def test_every_code_of_the_back_end_has_a_golden() -> None:
    sources = "\n".join(p.read_text() for p in sorted((ROOT / "src/polyloom/wafer").rglob("*.py")))
    codes = set(re.findall(r'"((?:map|wafer|task|simd)-[a-z-]+)",', sources))
    assert len(codes) > 25
    shown = "\n".join(p.read_text() for p in (HERE / "bad").glob("*.err"))
    assert {code for code in codes if f"[{code}]" not in shown} == SAID_IN_C_ONLY | PROVED_AWAY


MAPS = [p.read_text() for p in BAD] + [
    f"# lair: conv1d.lair\n{(EXAMPLES / 'conv1d.map').read_text()}",
    f"# lair: ff.lair M=32 N=16\n{(EXAMPLES / 'ff44.map').read_text()}",
    f"# lair: training.lair\n{(EXAMPLES / 'training.map').read_text()}",
]
WORDS = """size: compute_map: iport_map: oport_map: sparse: state: trigger: { } [ ] ( ) , ; : -> = <= < > #
C x y W PE index k w rw 0 1 2 13 15 -1 0:13 // mod * + - and or not exists true false : ff 4 5
99999999999999999999 0.5 * @ ! ' " [N]-> % / min max"""
TOKENS = [*WORDS.split(), "\n", "\t", "\x00", "é", "\u2028", "\ufeff", "\r\n"]


def survives(text: str) -> None:
    """Read, analyse and render; only a ``PolyloomError`` with diagnostics may come out."""
    refused = outcome("fuzz.map", text)
    if refused is not None:
        assert refused.diagnostics
        assert all(render(d) for d in refused.diagnostics)


def test_the_index_of_a_port_needs_no_name() -> None:
    text = """# lair: pad.lair
size: { PE[2, 2] }
compute_map: { pad[i] -> PE[i//4, 1] }
iport_map: { x[i = 0:7] -> [PE[0, -1] -> [i]] }
oport_map: { xp[i = 1:8] -> [PE[2, 1] -> index[i]]; xp[i] -> [PE[2, 0] -> index[i]] : i = 0 or i > 8 }
"""
    codes = [
        {d.code for d in refused.diagnostics} if (refused := outcome("ports.map", t)) is not None else set()
        for t in (text, text.replace("-> [i]]", "-> index[i]]"))
    ]
    assert codes[0] == codes[1]


@tried(150)
@given(st.integers(0, 2**32))
def test_token_soup(seed: int) -> None:
    chooser = random.Random(seed)
    body = " ".join(chooser.choices(TOKENS, k=chooser.randint(0, 40)))
    survives("# lair: conv1d.lair\n" + chooser.choice(["", "size: { PE[1, 2] }\ncompute_map: "]) + body)


@tried(150)
@given(st.integers(0, 2**32))
def test_mutated_maps(seed: int) -> None:
    chooser = random.Random(seed)
    head, _, body = chooser.choice(MAPS).partition("\n")
    for _ in range(chooser.randint(1, 3)):
        body = mutated(body, chooser)
    survives(f"{head}\n{body}")


def mutated(text: str, chooser: random.Random) -> str:
    """Drop, repeat, replace or insert a few characters or a token."""
    start = chooser.randrange(len(text) + 1)
    end = min(len(text), start + chooser.randint(0, 5))
    between = chooser.choice(["", chooser.choice(TOKENS), text[start:end] * 2, chooser.choice("[]{}:,;-0 ")])
    return text[:start] + between + text[end:]


@tried(50)
@given(st.text())
def test_any_text(text: str) -> None:
    survives(f"# lair: conv1d.lair\n{text}")
    survives(f"# lair: conv1d.lair\nsize: {{ {text} }}\ncompute_map: {{ {text} }}")
