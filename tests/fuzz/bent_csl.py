"""CSL programs bent at random: words dropped, doubled, exchanged, taken from elsewhere, ends cut off.

    python tests/fuzz/bent_csl.py 0 1000        seeds 0 to 999, one line for each that is a fault

Whatever the text is, it is compiled or refused by diagnostics, in little time.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

from polyloom.csl.compile import faults
from polyloom.csl.comptime import modules
from polyloom.csl.lint import check
from polyloom.diagnostics import PolyloomError

PROGRAMS = Path(__file__).resolve().parents[1] / "csl" / "programs"
MOST_SECONDS = 10
MOST_STEPS = 20_000
"""Steps at compile time, so that a loop that a change made endless ends soon."""

_WORD = re.compile(r'"[^"\n]*"|@?\w+|\s+|//[^\n]*|.', re.DOTALL)
_ODD = (
    *(
        "0",
        "1",
        "-1",
        "65536",
        "99999999999999999999",
        "1.5",
        "1e400",
        '"x"',
        "true",
        "{}",
        ".{}",
        "()",
        "*",
        "&",
    ),
    *(
        "u16",
        "i64",
        "f16",
        "type",
        "void",
        "anytype",
        "comptime",
        "var",
        "const",
        "fn",
        "task",
        "return",
        "break",
    ),
    *(
        "@zeros",
        "@get_dsd",
        "@import_module",
        "@as",
        "[",
        "]",
        "{",
        "}",
        "|",
        "=>",
        "->",
        ".",
        ",",
        ";",
        ":",
        "\0",
    ),
)


def originals() -> list[dict[str, str]]:
    """Return programs, each a file's text by its name."""
    folders = [PROGRAMS / "features", PROGRAMS / "pipeline"]
    return [{p.name: p.read_text(encoding="utf-8") for p in sorted(f.glob("*.csl"))} for f in folders]


def bent(seed: int) -> dict[str, str]:
    """Return the program of a seed: one of ours with one to four changes in one of its files."""
    r = Random(seed)
    files = dict(r.choice(originals()))
    name = r.choice(sorted(files))
    words = _WORD.findall(files[name])
    for _ in range(r.randint(1, 4)):
        _bend(r, words)
    files[name] = "".join(words)
    return files


def _bend(r: Random, words: list[str]) -> None:
    at = r.randrange(len(words)) if words else 0
    solid = [i for i, w in enumerate(words) if not w.isspace()]
    if not solid:
        words.append(r.choice(_ODD))
        return
    at = r.choice(solid)
    if r.random() < 0.85:
        words[at] = _alike(r, words, at, solid)
        return
    match r.randrange(7):
        case 0:
            del words[at]
        case 1:
            words.insert(at, words[at] + " ")
        case 2:
            other = r.choice(solid)
            words[at], words[other] = words[other], words[at]
        case 3:
            words[at] = r.choice(_ODD)
        case 4:
            words.insert(at, f" {r.choice(_ODD)} ")
        case 5:
            words[at] = words[r.choice(solid)]
        case _:
            del words[at : at + r.randint(1, 30)]


_WORDS = """
const var param fn task comptime layout if else while for switch return break continue struct enum
"""
_KEPT = frozenset(_WORDS.split())
_ROWS = (
    ("+", "-", "*", "/", "%", "&", "|", "^"),
    ("0", "1", "2", "-1", "7", "255", "65536", "1.5", "true", "false", ".{}", '"x"', "&grid", "sums"),
    ("u16", "i16", "u32", "f16", "f32", "bool", "color", "[4]i16", "*u16", "void", "type", "Mode", "i3"),
)


def _alike(r: Random, words: list[str], at: int, solid: list[int]) -> str:
    """Return a word that a parser takes where another stands, more often than not."""
    word = words[at]
    for row in _ROWS:
        if word in row:
            return r.choice(row)
    if word in _KEPT or not re.match(r"[@\w\"]", word):
        return word
    if word.isdigit():
        return r.choice(_ROWS[1])
    first = word[0] if word[0] in '@"' else "a"
    same = [w for i in solid if (w := words[i]) not in _KEPT and (w[0] if w[0] in '@"' else "a") == first]
    same = [w for w in same if re.match(r'[@\w"]', w)]
    return r.choice(same or [word])


def judge(files: Mapping[str, str]) -> str:
    """Return the first code that is said of a program, or nothing. Errors: whatever is no diagnostic."""
    before, modules.MOST_STEPS = modules.MOST_STEPS, MOST_STEPS
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
            layout = Path(folder) / "layout.csl"
            arch = "wse3" if sum(map(len, files.values())) % 2 else "wse2"
            said = check(layout, arch, {"width": 3})
            for diagnostic in said:
                str(PolyloomError(diagnostic))
            errors = [d for d in said if d.severity.value == "error"]
            found = errors or faults(layout, arch, {"width": 3})
            return found[0].code if found else ""
    finally:
        modules.MOST_STEPS = before


def main(first: int, last: int) -> int:
    """Judge seeds and print those that are faults; return how many."""
    counts: Counter[str] = Counter()
    wrong = 0
    for seed in range(first, last):
        start = time.process_time()
        try:
            counts[judge(bent(seed)) or "right"] += 1
        except Exception as fault:
            wrong += 1
            print(f"{seed}: {type(fault).__name__}: {str(fault)[:200]}")
        if time.process_time() - start > MOST_SECONDS:
            print(f"{seed}: took {time.process_time() - start:.1f} s")
            wrong += 1
    print(dict(counts.most_common()), f"{wrong} faults")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(*map(int, sys.argv[1:3])) else 0)
