"""The folder that `cslc` leaves: `out.json` for host programs, and the compiled program for `SdkRuntime`."""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
from pathlib import Path
from typing import Any

from polyloom.csl.compiled import Compiled
from polyloom.csl.host.options import Options
from polyloom.csl.host.program import Built
from polyloom.diagnostics import PolyloomError, error
from polyloom.files import read_regular
from polyloom.folders import write_folder

RESOLVED = "out.json"
PROGRAM = "program.pickle.txt"
_LARGEST = 2**30


def compile_to_folder(options: Options) -> Built:
    """Compile a layout and write the folder.

    Errors: the diagnostics of the program; `csl-fabric-size`; those of folders.
    """
    from polyloom.csl.compile import compile_layout

    compiled = compile_layout(
        options.layout, options.arch, options.params, options.colors, options.import_paths
    )
    options.check_size(compiled.width, compiled.height)
    return write_program(compiled, options)


def write_program(compiled: Compiled, options: Options) -> Built:
    """Write the folder of a compiled program."""
    size = options.fabric_size or (
        compiled.width + options.fabric_offset[0],
        compiled.height + options.fabric_offset[1],
    )
    resolved = {
        "arch": options.arch,
        "params": options.params,
        "colors": options.colors,
        "fabric_dims": list(size),
        "fabric_offsets": list(options.fabric_offset),
        "program_dims": [compiled.width, compiled.height],
        "memcpy": options.memcpy,
        "channels": options.channels,
    }
    pickled = base64.encodebytes(pickle.dumps(compiled)).decode("ascii")
    texts = {RESOLVED: json.dumps(resolved, indent=1) + "\n", PROGRAM: pickled}
    write_folder(texts, {"kind": "csl"}, options.output, others_stay=True)
    return _built(compiled, resolved)


def open_folder(folder: Path) -> Built:
    """Return the program of a folder that `cslc` left. Errors: `csl-host-folder`."""
    try:
        resolved = json.loads(read_regular(folder / RESOLVED, _LARGEST))
        pickled = base64.decodebytes(read_regular(folder / PROGRAM, _LARGEST))
        compiled = _Reader(io.BytesIO(pickled)).load()
        if not isinstance(compiled, Compiled):
            raise TypeError(compiled)
        return _built(compiled, resolved)
    except (
        PolyloomError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        pickle.UnpicklingError,
        EOFError,
        binascii.Error,
    ):
        raise PolyloomError(
            error(
                "csl-host-folder",
                f"`{folder}` holds no program that this version's `cslc` wrote",
                helps=[f"`polyloom cslc layout.csl -o {folder}` writes it"],
            )
        ) from None


class _Reader(pickle.Unpickler):
    """Makes nothing but values of Polyloom's own classes."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of CSL programs. Errors: UnpicklingError for anything else."""
        own = module.startswith(("polyloom.csl.", "polyloom.wafer.")) and "." not in name
        allowed = own or (module, name) == ("builtins", "frozenset")
        found = super().find_class(module, name) if allowed else None
        if not isinstance(found, type):
            raise pickle.UnpicklingError(f"{module}.{name}")
        return found


def _built(compiled: Compiled, resolved: dict[str, Any]) -> Built:
    width, height = resolved["fabric_dims"]
    x, y = resolved["fabric_offsets"]
    return Built(compiled, resolved["arch"], (width, height), (x, y), resolved["params"])
