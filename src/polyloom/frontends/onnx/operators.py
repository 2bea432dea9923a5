"""What ONNX's operators may be given, by the version of the operator: what is not in the table is refused.

An attribute that is not known changes a result in a way that is not known, and so does an opset of later
years: neither may be ignored. The table is ``operators.txt``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from polyloom.frontends.graph.model import Graph, Node

WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Signature:
    """One version of an operator. Counts are (fewest, most); ``most`` is None where there is no limit.

    ``attributes``: their kinds by name (``KINDS``). ``withdrawn``: there is no such operator from here on.
    """

    inputs: tuple[int, int | None] = (0, None)
    outputs: tuple[int, int | None] = (0, None)
    attributes: Mapping[str, str] | None = None
    required: frozenset[str] = frozenset()
    withdrawn: bool = False


@dataclass(frozen=True)
class Operators:
    """``newest``: the newest opset that is known, by domain; ``versions``: by domain and operator."""

    newest: Mapping[str, int]
    versions: Mapping[tuple[str, str], Mapping[int, Signature]]


KINDS = {
    "i": "an integer",
    "f": "a number",
    "s": "a text",
    "t": "a tensor",
    "g": "a graph",
    "is": "a list of integers",
    "fs": "a list of numbers",
    "ss": "a list of texts",
    "ts": "a list of tensors",
    "gs": "a list of graphs",
    "sparse": "a sparse tensor",
    "type": "a type",
}
_LISTED = {"is": int, "fs": float, "ss": str, "ts": np.ndarray, "gs": Graph}
_SINGLE = {"i": int, "f": float, "s": str, "t": np.ndarray, "g": Graph}


def fault(node: Node) -> str | None:
    """Return why a node is no operator of its opset as the table knows it; None where it is one."""
    table = operators()
    versions = table.versions.get((node.domain, node.op))
    if versions is None:
        return None
    if node.version < 1:
        return f"the file does not say of which opset of the domain `{node.domain or 'ai.onnx'}` it is"
    newest = table.newest[node.domain]
    if node.version > newest:
        return f"opset {node.version} of {node.op} is not known: Polyloom knows up to opset {newest}"
    said = [v for v in versions if v <= node.version]
    if not said:
        return f"{node.op} is no operator of opset {node.version}: it came with opset {min(versions)}"
    signature = versions[max(said)]
    if signature.withdrawn:
        return f"{node.op} is no operator of opset {node.version}: it ended with opset {max(said)}"
    return _misfit(node, signature)


def _misfit(node: Node, signature: Signature) -> str | None:
    attributes = signature.attributes or {}
    for name, value in node.attributes.items():
        if name not in attributes:
            return f"attribute `{name}` is not known of {node.op} of opset {node.version}"
        if not _is_of(value, attributes[name]):
            return f"attribute `{name}` is not {KINDS[attributes[name]]}"
    lacking = sorted(signature.required - {*node.attributes})
    if lacking:
        return f"attribute `{lacking[0]}` is missing"
    return _miscounted("inputs", node.inputs, signature.inputs) or _miscounted(
        "outputs", node.outputs, signature.outputs
    )


def _miscounted(what: str, names: tuple[str, ...], allowed: tuple[int, int | None]) -> str | None:
    fewest, most = allowed
    while names and not names[-1]:
        names = names[:-1]
    if len(names) < fewest:
        return f"{len(names)} {what}, at least {fewest} are needed"
    return (
        f"{len(names)} {what}, at most {most} are known" if most is not None and len(names) > most else None
    )


def _is_of(value: Any, kind: str) -> bool:
    """Tell whether a value read from a file has a kind; what cannot be used is a fault of those who ask."""
    if kind in _LISTED:
        return isinstance(value, tuple) and all(isinstance(v, _LISTED[kind]) for v in value)
    wanted = _SINGLE.get(kind)
    known = isinstance(value, (int, float, str, np.ndarray, Graph, tuple))
    return not known or (wanted is not None and isinstance(value, wanted))


@cache
def operators() -> Operators:
    """Return the table."""
    newest: dict[str, int] = {}
    versions: dict[tuple[str, str], dict[int, Signature]] = {}
    domain = ""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("domain "):
            _, name, number = line.split()
            domain = "" if name == "ai.onnx" else name
            newest[domain] = int(number)
        elif not line.startswith("#"):
            name, _, rest = line.partition(": ")
            numbers, *fields = (part.strip() for part in rest.split("|"))
            signature = _signature(fields)
            versions.setdefault((domain, name), {}).update((int(n), signature) for n in numbers.split(","))
    return Operators(newest, versions)


def _signature(fields: list[str]) -> Signature:
    if fields == [WITHDRAWN]:
        return Signature(withdrawn=True)
    inputs, outputs, stated = fields
    kinds = dict(a.split("=") for a in stated.split())
    attributes = {name: kind.rstrip("*") for name, kind in kinds.items()}
    required = frozenset(name for name, kind in kinds.items() if kind.endswith("*"))
    return Signature(_range(inputs), _range(outputs), attributes, required)


def _range(text: str) -> tuple[int, int | None]:
    fewest, colon, most = text.partition(":")
    if not colon:
        return int(fewest), int(fewest)
    return int(fewest), int(most) if most else None
