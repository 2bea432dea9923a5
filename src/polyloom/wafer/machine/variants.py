"""Machines of users: a JSON file that says what differs from a machine that there is a model of.

    {"like": "cs2", "title": "twice the memory", "sram_bytes": 98304}

An entry is the number itself, or, as in ``machines/``, an object of a ``value`` and where it comes from:
``source``, ``fit`` or ``estimate``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from polyloom.diagnostics import PolyloomError, error
from polyloom.files import read_source
from polyloom.wafer.machine.model import Machine, load_machine, machines

_TEXTS = ("name", "title")
_NUMBERS = tuple(f.name for f in fields(Machine) if f.name not in (*_TEXTS, "provenance", "fitted_to"))


def machine_of(name: str) -> Machine:
    """Return the machine with a name, or of a file, whose name ends with ``.json``.

    Errors: ``machine-unknown``, ``machine-file`` and those of ``read_source``.
    """
    return read_machine(Path(name)) if name.endswith(".json") else load_machine(name)


def read_machine(path: Path) -> Machine:
    """Return the machine that a file describes; what the file does not name is as of the one it is ``like``.

    Errors: ``machine-file``, ``machine-unknown`` and those of ``read_source``.
    """
    try:
        document = json.loads(read_source(path).text)
    except (ValueError, RecursionError) as fault:
        raise _wrong(path, f"it is no JSON: {fault}") from fault
    if not isinstance(document, dict) or not isinstance(document.get("like"), str):
        raise _wrong(path, 'it does not say which machine it is `"like"`')
    base = load_machine(document.pop("like"))
    unknown = [key for key in document if key not in (*_TEXTS, *_NUMBERS)]
    if unknown:
        raise _wrong(path, f"no machine has `{unknown[0]}`", f"a machine has {', '.join(_NUMBERS)}")
    texts: dict[str, Any] = {
        key: str(document.pop(key, default)) for key, default in (("name", path.stem), ("title", path.stem))
    }
    values = {key: _value(path, key, entry, getattr(base, key)) for key, entry in document.items()}
    provenance = {**base.provenance, **{key: _provenance(path, entry) for key, entry in document.items()}}
    fitted_to = {key: found for key, found in base.fitted_to.items() if key not in document}
    try:
        return replace(base, **texts, **values, provenance=provenance, fitted_to=fitted_to)
    except ValueError as fault:
        raise _wrong(path, str(fault)) from fault


def _value(path: Path, key: str, entry: Any, like: Any) -> Any:
    """Return the number of an entry, of the kind that the other machine has there."""
    value = entry.get("value") if isinstance(entry, dict) and "value" in entry else entry
    if isinstance(like, Mapping) and isinstance(value, dict):
        value = {name: _value(path, f"{key}.{name}", each, 1) for name, each in value.items()}
        return {**like, **value}
    if isinstance(like, tuple) and isinstance(value, list):
        found = tuple(_value(path, key, each, 1) for each in value)
        if found and (key != "grid" or len(found) == 2):
            return found
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and not isinstance(like, Mapping | tuple)
    ):
        if isinstance(like, float) and value > 0:
            return float(value)
        if isinstance(value, int) and 0 <= value < 2**31:
            return value
    raise _wrong(path, f"`{key}` is of another kind than {json.dumps(_plain(like))}")


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _provenance(path: Path, entry: Any) -> str:
    found = entry if isinstance(entry, dict) else {}
    if "source" in found:
        return str(found["source"])
    return f"fit: {found['fit']}" if "fit" in found else f"estimate: {found.get('estimate', path.name)}"


def _wrong(path: Path, reason: str, *helps: str) -> PolyloomError:
    known = f'it begins `{{"like": "cs2", ...}}`, with one of {", ".join(machines())}'
    message = f"`{path}` describes no machine: {reason}"
    return PolyloomError(error("machine-file", message, helps=[*helps, known]))
