"""The C preprocessor: pcpp with headers of our own, the system's, or a command that the user names.

All give text with ``#line`` directives, which the parser follows.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyloom.caches import work_folder
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c.syntax.faults import fail, line_span
from polyloom.frontends.c.syntax.places import name_in_text
from polyloom.frontends.c.syntax.preprocessing_tokens import lexer

HEADERS = Path(__file__).parents[1] / "headers"
"""Declarations of the parts of C's library that a static control part uses."""

INTRINSICS = HEADERS / "intrinsics"
"""Types of vector instructions; what a compiler has in their place takes seconds to parse."""

_DIALECT = {
    "__POLYLOOM__": "1",
    "__attribute__(x)": "",
    "__restrict__": "restrict",
    "__restrict": "restrict",
    "__inline__": "inline",
    "__inline": "inline",
    "__const": "const",
    "__volatile__": "volatile",
    "__extension__": "",
}
"""GNU spellings that the parser does not know."""

_SYSTEM = {"__asm__(...)": "", "__asm(...)": "", "__alignof__": "_Alignof", "__signed__": "signed"}
"""Further ones, of the system's headers."""

_SECONDS = 60
"""How long a preprocessor may take."""

_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+mdh\b.*$", re.MULTILINE)
_EMPTY_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]*(//.*|/\*.*\*/[ \t]*)?$", re.MULTILINE)
"""What C lets stand and pcpp falls over."""
_NO_LINES = dict.fromkeys(map(ord, "\f\v\x1c\x1d\x1e\x85\u2028\u2029"), " ")
"""What ends a line for Python and not for C: form feeds between the functions of GNU's programs."""
_MDH = re.compile(r"^([ \t]*)#([ \t]*)mdh\b", re.MULTILINE)


def preprocess(
    source: Source, defines: Mapping[str, str], include: Sequence[Path], command: str | None = None
) -> str:
    """Return the preprocessed text, with ``#line`` directives.

    ``include``: folders for ``#include``, before our own headers; the folder of the source comes first.
    ``command``: another preprocessor, ``gcc -E``; it gets ``-D`` and ``-I`` and the name of a file. Without
    one, the system's is asked for what ours cannot do: a header that it does not have.
    ``#mdh parallel(...)``, as md_poly prints it, is read as ``#pragma mdh parallel(...)``.

    Errors: ``c-preprocessor``. Source: md_poly, Listing 1.
    """
    if command is not None:
        return _external(source, defines, [*_folders(source, include), HEADERS], command)
    try:
        return _pcpp(source, defines, [*_folders(source, include), HEADERS, INTRINSICS])
    except PolyloomError:
        found = preprocess_with_system(source, defines, include)
        if found is None:
            raise
        return found


def preprocess_with_system(source: Source, defines: Mapping[str, str], include: Sequence[Path]) -> str | None:
    """Return the text as the system's ``cc -E`` makes it, with its headers; None where it cannot."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    folders = [*_folders(source, include), INTRINSICS]
    try:
        return _external(source, {**_SYSTEM, **defines}, folders, f"{shlex.quote(compiler)} -E")
    except PolyloomError:
        return None


def as_pragmas(text: str) -> str:
    """Return a text with ``#mdh ...`` as ``#pragma mdh ...``, which every preprocessor lets through."""
    return _MDH.sub(r"\1#\2pragma mdh", text)


def _folders(source: Source, include: Sequence[Path]) -> list[Path]:
    return [Path(source.name).parent, *include]


def _pcpp(source: Source, defines: Mapping[str, str], folders: Sequence[Path]) -> str:
    from pcpp import Preprocessor

    faults: list[tuple[int, str]] = []
    name = name_in_text(source)
    absolute = str(Path(name).absolute())

    class Quiet(Preprocessor):  # type: ignore[misc]
        """Collects errors in place of printing them."""

        def on_error(self, file: str, line: int, message: str) -> None:
            faults.append((line if file in (name, absolute) else 0, message))

        def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
            del is_system_include
            return io.StringIO(Path(includepath).read_text(encoding="utf-8-sig", errors="replace"))

        def parsegen(self, input: str, *names: Any) -> Any:
            return super().parsegen(_EMPTY_PRAGMA.sub("", input.translate(_NO_LINES)), *names)

    processor: Any = Quiet(lexer())
    processor.line_directive = "#line"
    for macro, value in {**_DIALECT, **defines}.items():
        processor.define(f"{macro} {value}")
    for folder in folders:
        processor.add_path(str(folder))
    processor.rewrite_paths = []  # names stay as they were given, so that the source is known by its own
    processor.parse(as_pragmas(source.text), name)
    out = io.StringIO()
    processor.write(out)
    if faults:
        line, message = faults[0]
        fail(
            "c-preprocessor",
            message[:1].lower() + message[1:],
            line_span(source, line),
            helps=[_HELP],
        )
    named = out.getvalue().replace(f'"{absolute}"', f'"{name}"')
    return _PRAGMA.sub(lambda found: _expanded(found.group(), processor), named)


def _expanded(line: str, processor: Any) -> str:
    """Return a pragma with its macros expanded, which no preprocessor does by itself."""
    lead, _, rest = line.partition("mdh")
    tokens = processor.expand_macros(processor.tokenize(rest))
    return f"{lead}mdh{''.join(token.value for token in tokens)}"


def _external(source: Source, defines: Mapping[str, str], folders: Sequence[Path], command: str) -> str:
    options = [f"-D{name}={value}" for name, value in {**_DIALECT, **defines}.items()]
    options += [f"-I{folder}" for folder in folders]
    text = as_pragmas(source.text)
    text = _PRAGMA.sub(lambda found: _PRAGMA_AS_TEXT + found.group().partition("mdh")[2], text)
    with work_folder() as folder:
        path = folder / "source.c"
        path.write_text(f'#line 1 "{name_in_text(source)}"\n{text}', encoding="utf-8")
        done = _run(command, [*options, str(path)])
    if done.returncode:
        fail(
            "c-preprocessor",
            f"`{command}` ends with status {done.returncode}",
            None,
            notes=done.stderr.strip().splitlines()[:5],
            helps=[_HELP],
        )
    lines = re.sub(r"^# (\d+ )", r"#line \1", done.stdout, flags=re.MULTILINE)
    return re.sub(rf"^[ \t]*{_PRAGMA_AS_TEXT}", "#pragma mdh", lines, flags=re.MULTILINE)


def _run(command: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [*shlex.split(command), *arguments],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as fault:
        fail(
            "c-preprocessor",
            f"the preprocessor `{command}` cannot be run: {fault}",
            None,
            helps=["leave `--cpp` out to use the built-in preprocessor, or name another: `--cpp 'gcc -E'`"],
        )


_HELP = "`-I FOLDER` names a folder of headers, `-D NAME=VALUE` defines a macro"
_PRAGMA_AS_TEXT = "__polyloom_mdh__"
"""What stands for ``#pragma mdh`` where a command is to expand the macros behind it."""
