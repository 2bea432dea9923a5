"""Programs on the processor as documents of JSON and shared objects, and back; see ``native/portable``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.host import Buffer, HostProgram, Parameter, Role
from polyloom.ir.types import ElementType
from polyloom.ir.verification.references import Expected
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import NativeDevice
from polyloom.mdh.native.execution import NativeExecutable, Prepared
from polyloom.mdh.native.portable import (
    Document,
    Objects,
    document_of,
    integer_document,
    integer_of,
    prepared_of,
)
from polyloom.mdh.runtime.arguments import Signature

Whole = Callable[[], CompiledProgram]
"""Makes the program of its source, where something is asked that was not saved."""


def saved_program(
    program: CompiledProgram, sizes: Sequence[Mapping[str, int]], objects: Objects
) -> tuple[Document, dict[str, Any]]:
    """Return a program as a document, and the arrays that are its constants; its code goes to ``objects``.

    ``sizes``: values of its parameters for which it is built, beside those of earlier calls.

    Errors: ``save-device`` for a program of OpenCL or CUDA, ``save-sizes`` where no sizes are known;
    ``native-...``.
    """
    executable = program.executable
    if not isinstance(executable, NativeExecutable):
        helps = ["load it for the processor: `polyloom.load(source, device='native')`"]
        message = f"what runs on `{program.device.name}` cannot be saved"
        raise PolyloomError(error("save-device", message, helps=helps))
    signature = program.signature
    wanted = [dict(values) for values in sizes] or ([] if signature.program.parameters else [{}])
    found = executable.known_sizes()
    found += [values for values in wanted if values not in found]
    if not found:
        names = ", ".join(p.name for p in signature.program.parameters)
        helps = [
            f"call it once, or give them: `save(path, {{'{signature.program.parameters[0].name}': 100}})`"
        ]
        message = f"no values of {names} are known for which it is to be built"
        raise PolyloomError(error("save-sizes", message, helps=helps))
    numbers = {n: v for n, v in program.constants.items() if not isinstance(v, np.ndarray)}
    document = {
        "program": _program(signature.program),
        "arguments": list(signature.arguments),
        "open_ended": sorted(signature.open_ended),
        "defaults": dict(signature.defaults),
        "returned": signature.returned,
        "numbers": {name: np.asarray(value).item() for name, value in numbers.items()},
        "built": [{"sizes": values, **document_of(executable.prepared(values), objects)} for values in found],
    }
    return document, {n: v for n, v in program.constants.items() if isinstance(v, np.ndarray)}


def restored_program(
    document: Document, arrays: Mapping[str, Any], objects: Objects, device: NativeDevice, whole: Whole
) -> CompiledProgram:
    """Return the program of a document; ``arrays``: its constants.

    What it was built for runs at once. For other sizes, checks and searches ``whole`` is asked.
    """
    signature = Signature(
        _program_of(document["program"]),
        tuple(document["arguments"]),
        open_ended=frozenset(document["open_ended"]),
        defaults=document["defaults"],
        returned=document["returned"],
    )
    return _Restored(signature, document["built"], {**arrays, **document["numbers"]}, objects, device, whole)


class _Restored(CompiledProgram):
    """A program whose nodes are not known, but built functions of them."""

    def __init__(
        self,
        signature: Signature,
        built: Sequence[Document],
        constants: Mapping[str, Any],
        objects: Objects,
        device: NativeDevice,
        whole: Whole,
    ) -> None:
        def reference(parameters: Mapping[str, int], arrays: Mapping[str, Any]) -> Expected:
            return whole().reference(parameters, arrays)

        executable = _Executable(signature.program, device, built, objects, whole, list(constants))
        super().__init__(
            signature.program, executable, _no_kernels, signature, (), reference, constants=constants
        )


def _no_kernels(*_: Any) -> Any:
    raise AssertionError("a restored program makes no kernels")


class _Executable(NativeExecutable):
    def __init__(
        self,
        program: HostProgram,
        device: NativeDevice,
        built: Sequence[Document],
        objects: Objects,
        whole: Whole,
        constants: Sequence[str],
    ) -> None:
        super().__init__(program, device, _no_kernels, constants)
        self._built, self._objects, self._whole = built, objects, whole

    def known_sizes(self) -> list[dict[str, int]]:
        """Return the values of parameters for which it was built, here or before it was saved."""
        found = super().known_sizes()
        before = [document["sizes"] for document in self._built]
        return [*(sizes for sizes in before if sizes not in found), *found]

    def _made(self, parameters: Mapping[str, int], arrays: Mapping[str, object], *, timed: bool) -> Prepared:
        for document in self._built:
            if not timed and document["sizes"] == dict(parameters):
                return prepared_of(document, self._objects, self.device.threads)
        whole = self._whole().executable
        assert isinstance(whole, NativeExecutable)
        return whole.prepared(parameters, timed=timed, arrays=arrays)


def _program(program: HostProgram) -> Document:
    """Return what callers see of a program: its parameters and buffers, not its nodes."""
    return {
        "name": program.name,
        "strict": program.strict,
        "context": None if program.context is None else integer_document(program.context),
        "parameters": [[p.name, p.type.value] for p in program.parameters],
        "buffers": [_buffer(b) for b in program.buffers],
    }


def _buffer(buffer: Buffer) -> Document:
    return {
        "name": buffer.name,
        "type": buffer.type.value,
        "shape": list(map(integer_document, buffer.shape)),
        "role": buffer.role.value,
        "rows": None if buffer.rows is None else list(map(integer_document, buffer.rows)),
    }


def _program_of(document: Document) -> HostProgram:
    context = document["context"]
    return HostProgram(
        name=document["name"],
        parameters=tuple(Parameter(name, ElementType(kind)) for name, kind in document["parameters"]),
        buffers=tuple(map(_buffer_of, document["buffers"])),
        body=(),
        context=None if context is None else integer_of(context),
        strict=document["strict"],
    )


def _buffer_of(document: Document) -> Buffer:
    rows = document["rows"]
    return Buffer(
        name=document["name"],
        type=ElementType(document["type"]),
        shape=tuple(map(integer_of, document["shape"])),
        role=Role(document["role"]),
        rows=None if rows is None else (integer_of(rows[0]), integer_of(rows[1])),
    )
