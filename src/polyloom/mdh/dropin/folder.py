"""A drop-in: a C program whose SCoPs are done by other functions, as a folder that a C compiler builds.

``NAME.c`` is the user's file with a call in front of each SCoP, which runs where the call declines. What is
called, C or OpenCL, is a side's (``loops``, ``opencl``). A layer is the side without a C file around it.

Not in the papers: md_poly stops at the kernels. PPCG's OpenCL output is of the same kind.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Unsupported, error, remark
from polyloom.folders import write_folder
from polyloom.ir.host import HostProgram
from polyloom.ir.inequalities import determined
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.passes import after_pass
from polyloom.mdh.dropin.points import points_of
from polyloom.mdh.dropin.signature import Signature, signature
from polyloom.mdh.dropin.source import Place, Replacement, replacement, with_calls
from polyloom.mdh.print.names import c_names

BUILD = "build.txt"
CALLER = '"${1:?name the C file that calls the function}"'
"""What the command of a function without a file around it builds with it: what the shell gives it."""

Versions = Sequence[tuple[Mapping[str, int], HostProgram]]
"""A program for certain values of parameters, and for all."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Side:
    """What makes the functions of a drop-in for a device, whose name in the manifest is ``device``.

    ``files``: of functions, name to text; they are in ``file``. ``command``: what builds it, where
    ``{program}`` stands for the file around, with its options; ``note``: what else people may say there.
    ``endless``: the functions take arrays where they lie, so that they need not know how long these are.
    """

    target: str
    device: str
    file: str
    command: str
    note: str
    files: Callable[[Sequence[tuple[Signature, Versions]]], dict[str, str]]
    endless: bool = False


@dataclass(frozen=True, eq=False)
class DropIn:
    """``files``: name to text; ``document``: for ``manifest.json``; ``remarks``: on loops that stay."""

    files: Mapping[str, str]
    document: Mapping[str, Any]
    remarks: tuple[Diagnostic, ...] = ()

    def __repr__(self) -> str:
        return f"<DropIn: {', '.join(self.files)}>"

    def write(self, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write everything into a folder, whole or not at all; other files there stay. Return the names.

        Errors: ``folder-occupied``, ``file-unwritable``.
        """
        return write_folder(self.files, self.document, Path(folder), others_stay=True)


@dataclass(frozen=True, eq=False)
class Maker:
    """Makes drop-ins. ``values``: of parameters for which there is code of its own, beside that for all."""

    side: Side
    values: Mapping[str, int] = field(default_factory=dict)

    def of_source(
        self,
        source: Source,
        parts: Sequence[tuple[Place, HostProgram]],
        options: Sequence[str] = (),
        conditions: Sequence[str] = (),
    ) -> DropIn:
        """Return a C file as a drop-in.

        ``options``: of the C compiler, ``-D`` and ``-I``, with which it was read. ``conditions``: of ``#if``,
        under which the functions do what the file does. A part that nobody marked stays as it is where no
        call of it can be written.

        Errors: ``Unsupported`` with ``drop-in-...``.
        """
        ranges, programs, remarks = _replaced(source, parts, endless=self.side.endless)
        calls = [part.call for part in ranges]
        name = PurePath(source.name).name
        made = self._made(list(zip(calls, programs, strict=True)))
        if name in made:
            helps = ["give the file another name"]
            raise Unsupported(error("drop-in-name", f"a file beside it is called `{name}`, too", helps=helps))
        if any(part.copies for part in ranges):
            made[self.side.file] += _MEMORY
        if any(part.helpers for part in ranges):
            made[self.side.file] += _HELPERS
        program = with_calls(source.text, ranges, conditions, self.side.file)
        found = self._complete({name: program, **made}, self._command(name, options), calls)
        return replace(found, remarks=remarks)

    def of_program(self, program: HostProgram) -> DropIn:
        """Return a host program, such as a layer's, as a C function without a file around it."""
        call = signature(program, next(iter(c_names([f"polyloom_{program.name}"]).values())))
        return self._complete(self._made([(call, program)]), self.side.command.format(program=CALLER), [call])

    def _made(self, functions: Sequence[tuple[Signature, HostProgram]]) -> dict[str, str]:
        return self.side.files([(call, self._versions(program)) for call, program in functions])

    def _versions(self, program: HostProgram) -> Versions:
        """Return the program for the given values, if it has such parameters, and for all values."""
        known = {p.name: self.values[p.name] for p in program.parameters if p.name in self.values}
        known |= determined(program.context, known)
        if not known:
            return [({}, program)]
        return [(known, after_pass("specialisation", specialise(program, known))), ({}, program)]

    def _command(self, name: str, options: Sequence[str]) -> str:
        """Return the command for a shell; a name that begins with a dash is no option."""
        file = f"./{name}" if name.startswith("-") else name
        given = map(shlex.quote, (*options, file))
        return self.side.command.format(program=" ".join(given))

    def _complete(self, texts: dict[str, str], command: str, calls: Sequence[Signature]) -> DropIn:
        document = {
            "target": self.side.target,
            "device": self.side.device,
            "functions": [call.prototype for call in calls],
            "build": command,
        }
        return DropIn({**texts, BUILD: f"{command}\n\n{self.side.note}"}, document)


def check_values(values: Mapping[str, int], programs: Sequence[HostProgram]) -> None:
    """Refuse values of what is no parameter. Errors: ``parameter-unknown``."""
    known = list(dict.fromkeys(p.name for program in programs for p in program.parameters))
    helps = [
        f"parameters are: {', '.join(known)}" if known else "there are no parameters: all sizes are fixed"
    ]
    unknown = [name for name in values if name not in known]
    if unknown:
        found = [
            error("parameter-unknown", f"there is no parameter `{name}`", helps=helps) for name in unknown
        ]
        raise PolyloomError(*found)


def _replaced(
    source: Source, parts: Sequence[tuple[Place, HostProgram]], *, endless: bool
) -> tuple[list[Replacement], list[HostProgram], tuple[Diagnostic, ...]]:
    """Return the parts with calls, their programs, and remarks on those without, which nobody marked.

    Errors: those of a part that was marked, or of the first where none has a call.
    """
    ranges, programs, faults = list[Replacement](), list[HostProgram](), list[tuple[Place, Unsupported]]()
    for (place, program), name in zip(parts, _functions(parts), strict=True):
        try:
            call, points = signature(program, name), points_of(program) or ()
            ranges.append(replacement(source, place, call, points, endless=endless))
            programs.append(program)
        except Unsupported as fault:
            if place.marked:
                raise
            faults.append((place, fault))
    if faults and not ranges:
        raise faults[0][1]
    return ranges, programs, tuple(_left(place, fault) for place, fault in faults)


def _left(place: Place, fault: Unsupported) -> Diagnostic:
    first = fault.diagnostics[0]
    lines = place.source.lines(*place.extent)
    message = f"the loops of `{place.name}` in line {lines} stay as they are: {first.message}"
    return remark("drop-in-left", message, first.span, helps=first.helps)


def _functions(parts: Sequence[tuple[Place, HostProgram]]) -> list[str]:
    """Return a name for each function: ``polyloom_gemm``, ``polyloom_gemm_2`` of the next part there.

    Of a ``static`` one it has that of the file: ``polyloom_blas_gemm``.
    """
    found: list[str] = []
    numbers = Counter[str]()
    for place, _ in parts:
        numbers[place.name] += 1
        file = re.sub(r"\W", "_", PurePath(place.source.name).stem) + "_" if place.static else ""
        number = f"_{numbers[place.name]}" if numbers[place.name] > 1 else ""
        found += c_names([f"polyloom_{file}{place.name}{number}"], (*found, *_names_of_ours())).values()
    return found


@cache
def _names_of_ours() -> frozenset[str]:
    """Return the names that our own text in C begins in the same way."""
    native = files("polyloom.mdh.dropin") / "native"
    texts = [file.read_text(encoding="utf-8") for file in native.iterdir() if file.is_file()]
    return frozenset(re.findall(r"\bpolyloom_\w+", "\n".join([*texts, _MEMORY, _HELPERS]))) | _OF_BLOCKS


_OF_BLOCKS = frozenset(["polyloom_done", "polyloom_returned"])


_MEMORY = """
#ifdef __cplusplus
extern "C" {
#endif
/* Memory for elements that are members of structures, side by side; NULL where there is none. Other files
   of the program may have these functions, too. */
#ifdef __GNUC__
__attribute__((weak)) void *polyloom_take(long long bytes);
__attribute__((weak)) void polyloom_give(void *memory);
#endif
void *polyloom_take(long long bytes) { return bytes < 0 ? NULL : malloc(bytes ? (size_t)bytes : 1); }

void polyloom_give(void *memory) { free(memory); }
#ifdef __cplusplus
}
#endif
"""

_HELPERS = """
#ifdef __cplusplus
extern "C" {
#endif
/* Functions of integers that calls ask about sizes. Other files of the program may have them, too. */
#ifdef __GNUC__
__attribute__((weak)) long long polyloom_floor_div(long long a, long long b);
__attribute__((weak)) long long polyloom_lesser(long long a, long long b);
__attribute__((weak)) long long polyloom_greater(long long a, long long b);
#endif
long long polyloom_floor_div(long long a, long long b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

long long polyloom_lesser(long long a, long long b) { return a < b ? a : b; }

long long polyloom_greater(long long a, long long b) { return a > b ? a : b; }
#ifdef __cplusplus
}
#endif
"""
