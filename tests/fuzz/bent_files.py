"""Model files bent at random: bytes changed, ends cut off, fields of messages dropped or given odd values.

    python tests/fuzz/bent_files.py 0 1000        seeds 0 to 999, one line for each that is a fault

Whatever a file holds, it is imported or refused by a diagnostic, in little time.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from models import random_model

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.graph.lowering import NOT_FORESEEN
from polyloom.sources import load_model

Random = np.random.Generator
DATA = Path(__file__).resolve().parent.parent / "data"
MOST_SECONDS = 5
ODD = (0, 1, -1, 2, 7, 63, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))


def bent(seed: int) -> tuple[str, bytes]:
    """Return the ending and the bytes of the file of a seed."""
    r = np.random.default_rng(seed)
    kind = ("onnx", "onnx", "pb", "pt2")[int(r.integers(4))]
    if kind == "onnx":
        return ".onnx", _bent_onnx(r, seed)
    files = sorted(f for f in DATA.rglob(f"*.{kind}") if f.stat().st_size < 200_000)
    data = files[int(r.integers(len(files)))].read_bytes()
    return f".{kind}", _bent_archive(r, data) if kind == "pt2" and r.random() < 0.8 else _bent_bytes(r, data)


def _bent_bytes(r: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    if not data:
        return r.bytes(3)
    match int(r.integers(4)):
        case 0:
            return data[: int(r.integers(len(data) + 1))]
        case 1:
            start = int(r.integers(len(data)))
            del changed[start : start + int(r.integers(1, 40))]
        case 2:
            start = int(r.integers(len(data)))
            changed[start:start] = r.bytes(int(r.integers(1, 40)))
        case _:
            for place in r.integers(0, len(data), int(r.integers(1, 6))):
                changed[place] = r.integers(256)
    return bytes(changed)


def _bent_archive(r: Random, data: bytes) -> bytes:
    """Bend one member of a zip file, which is then whole again."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    name = str(r.choice([n for n in members if n.endswith("json")] or sorted(members)))
    members[name] = _bent_bytes(r, members[name] or b"x")
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return found.getvalue()


def _bent_onnx(r: Random, seed: int) -> bytes:
    model = random_model(seed)
    if r.random() < 0.4:
        return _bent_bytes(r, model.SerializeToString())
    for _ in range(int(r.integers(1, 4))):
        _bend_message(r, model)
    return model.SerializeToString()


def _bend_message(r: Random, message: Any) -> None:
    """Change a field somewhere in a message, deep down more often than not."""
    fields = message.ListFields()
    if not fields:
        return
    field, value = fields[int(r.integers(len(fields)))]
    if field.message_type is not None and r.random() < 0.9:
        many = hasattr(value, "append")
        if not many:
            _bend_message(r, value)
        elif len(value):
            _bend_message(r, value[int(r.integers(len(value)))])
    elif field.message_type is not None or r.random() < 0.2:
        message.ClearField(field.name)
    else:
        _bend_value(r, message, field.name, value)


def _bend_value(r: Random, message: Any, name: str, value: Any) -> None:
    many = hasattr(value, "append")
    one = value[int(r.integers(len(value)))] if many and len(value) else value
    new: Any
    match one:
        case bool() | int():
            new = int(ODD[int(r.integers(len(ODD)))])
        case float():
            new = float(r.choice([0, -1, np.nan, np.inf, 1e38, 1e-40]))
        case bytes():
            new = _bent_bytes(r, one or b"x")
        case _:
            new = str(r.choice(["", "x0", "y0", "odd\x1b[31m", "SAME_UPPER", "x" * 300]))
    try:
        if many:
            value[int(r.integers(len(value)))] = new
        else:
            setattr(message, name, new)
    except (ValueError, IndexError, TypeError):
        message.ClearField(name)


def outcome(path: Path) -> str:
    """Return ``imported``, the code of a refusal, or what is a fault of ours."""
    started = time.process_time()
    try:
        load_model(path)
        found = "imported"
    except PolyloomError as refused:
        text = " ".join(n for d in refused.diagnostics for n in d.notes)
        found = f"NOT FORESEEN {text[:300]}" if NOT_FORESEEN in text else refused.diagnostics[0].code
    except Exception as fault:
        found = f"FAULT {type(fault).__name__}: {str(fault)[:300]}"
    seconds = time.process_time() - started
    return found if seconds < MOST_SECONDS else f"FAULT {seconds:.1f} s, {found}"


def run(seed: int, folder: Path) -> str:
    """Return the outcome of a seed."""
    ending, data = bent(seed)
    path = folder / f"bent{ending}"
    path.write_bytes(data)
    return outcome(path)


def main() -> int:
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(int(sys.argv[1]), int(sys.argv[2])):
            found = run(seed, Path(folder))
            counts[found.split()[0]] += 1
            if found.startswith(("FAULT", "NOT")):
                print(seed, bent(seed)[0], found, flush=True)
    print(dict(counts))
    return 1 if counts["FAULT"] else 0


if __name__ == "__main__":
    sys.exit(main())
