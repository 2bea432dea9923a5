"""The table of ONNX's operators in `frontends/onnx/operators.txt`, from the schemas of an installed onnx.

    python benchmarks/onnx_operators.py > src/polyloom/frontends/onnx/operators.txt

The table says up to which opset Polyloom's operations were written. So with a newer onnx, first read what its
schemas change, then write the table anew.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from onnx import defs

from polyloom.frontends.onnx.read import OLDEST
from polyloom.frontends.onnx.table import DOMAINS

KINDS = {
    "FLOAT": "f",
    "INT": "i",
    "STRING": "s",
    "TENSOR": "t",
    "GRAPH": "g",
    "FLOATS": "fs",
    "INTS": "is",
    "STRINGS": "ss",
    "TENSORS": "ts",
    "GRAPHS": "gs",
    "SPARSE_TENSOR": "sparse",
    "TYPE_PROTO": "type",
}
HEAD = """\
# What ONNX's operators may be given: written by benchmarks/onnx_operators.py.
# domain NAME NEWEST: the newest opset that is known.
# operator: the versions that say the same | inputs | outputs | attributes, * where one is required;
# or the version in which it was withdrawn.
"""
BEYOND_ONNX = {("", "SimplifiedLayerNormalization"): ["1 | 2 | 1:2 | axis=i epsilon=f stash_type=i"]}
"""ONNX Runtime writes these into ONNX's own domain."""
WITHDRAWN_BUT_USED = {("GroupNormalization", 18)}
"""Withdrawn by a later schema, which says something else; files of its time say what it says."""
ANY = 2**31 - 1


def main() -> None:
    print(HEAD, end="")
    for domain, operations in sorted(DOMAINS.items()):
        print(f"domain {domain or 'ai.onnx'} {newest(domain)}")
        for name in sorted(operations):
            for line in BEYOND_ONNX.get((domain, name)) or lines(domain, name):
                print(f"{name}: {line}")


def newest(domain: str) -> int:
    if domain == "":
        return int(defs.onnx_opset_version())
    return max(s.since_version for s in defs.get_all_schemas_with_history() if s.domain == domain)


def lines(domain: str, name: str) -> list[str]:
    """Return a line for each stretch of versions that say the same."""
    mine = [s for s in defs.get_all_schemas_with_history() if (s.domain, s.name) == (domain, name)]
    ordered = sorted(mine, key=lambda s: s.since_version)
    oldest = max((s.since_version for s in ordered if s.since_version <= OLDEST), default=0)
    kept = [s for s in ordered if s.since_version >= oldest]
    return [
        f"{','.join(str(s.since_version) for s in same)} | {signature}"
        for signature, same in groupby(kept, key=described)
    ]


def described(schema: Any) -> str:
    if schema.deprecated and (schema.name, schema.since_version) not in WITHDRAWN_BUT_USED:
        return "withdrawn"
    attributes = " ".join(
        f"{a.name}={KINDS[a.type.name]}{'*' * a.required}"
        for a in sorted(schema.attributes.values(), key=lambda a: a.name)
    )
    inputs = _range(schema.min_input, schema.max_input)
    return f"{inputs} | {_range(schema.min_output, schema.max_output)} | {attributes}".rstrip(" ")


def _range(fewest: int, most: int) -> str:
    return str(fewest) if fewest == most else f"{fewest}:{'' if most == ANY else most}"


if __name__ == "__main__":
    main()
