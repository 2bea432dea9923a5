"""The C preprocessor: pcpp with headers of our own, or a command that the user names.

Both give text with ``#line`` directives, which the parser follows.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyloom.diagnostics import Source
from polyloom.frontends.c.faults import fail, line_span

HEADERS = Path(__file__).parent / "headers"
"""Declarations of the parts of C's library that a static control part uses."""

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

_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+mdh\b.*$", re.MULTILINE)
_MDH = re.compile(r"^([ \t]*)#([ \t]*)mdh\b", re.MULTILINE)


def preprocess(
    source: Source, defines: Mapping[str, str], include: Sequence[Path], command: str | None = None
) -> str:
    """Return the preprocessed text, with ``#line`` directives.

    ``include``: folders for ``#include``, before our own headers; the folder of the source comes first.
    ``command``: another preprocessor, ``gcc -E``; it gets ``-D`` and ``-I`` and the name of a file.
    ``#mdh parallel(...)``, as md_poly prints it, is read as ``#pragma mdh parallel(...)``.

    Errors: ``c-preprocessor``. Source: md_poly, Listing 1.
    """
    text = _MDH.sub(r"\1#\2pragma mdh", source.text)
    folders = [Path(source.name).parent, *include]
    if command is not None:
        return _external(source, text, defines, folders, command)
    return _pcpp(source, text, defines, [*folders, HEADERS])


def _pcpp(source: Source, text: str, defines: Mapping[str, str], folders: Sequence[Path]) -> str:
    from pcpp import Preprocessor

    faults: list[tuple[int, str]] = []
    absolute = str(Path(source.name).absolute())

    class Quiet(Preprocessor):  # type: ignore[misc]
        """Collects errors in place of printing them."""

        def on_error(self, file: str, line: int, message: str) -> None:
            faults.append((line if file in (source.name, absolute) else 0, message))

    processor: Any = Quiet()
    processor.line_directive = "#line"
    for name, value in {**_DIALECT, **defines}.items():
        processor.define(f"{name} {value}")
    for folder in folders:
        processor.add_path(str(folder))
    processor.rewrite_paths = []  # names stay as they were given, so that the source is known by its own
    processor.parse(text, source.name)
    out = io.StringIO()
    processor.write(out)
    if faults:
        line, message = faults[0]
        fail(
            "c-preprocessor",
            message[:1].lower() + message[1:],
            line_span(source, line),
            helps=["`-I FOLDER` names a folder of headers, `-D NAME=VALUE` defines a macro"],
        )
    named = out.getvalue().replace(f'"{absolute}"', f'"{source.name}"')
    return _PRAGMA.sub(lambda found: _expanded(found.group(), processor), named)


def _expanded(line: str, processor: Any) -> str:
    """Return a pragma with its macros expanded, which no preprocessor does by itself."""
    lead, _, rest = line.partition("mdh")
    tokens = processor.expand_macros(processor.tokenize(rest))
    return f"{lead}mdh{''.join(token.value for token in tokens)}"


def _external(
    source: Source, text: str, defines: Mapping[str, str], folders: Sequence[Path], command: str
) -> str:
    options = [f"-D{name}={value}" for name, value in {**_DIALECT, **defines}.items()]
    options += [f"-I{folder}" for folder in [*folders, HEADERS]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "source.c"
        path.write_text(f'#line 1 "{source.name}"\n{text}', encoding="utf-8")
        try:
            done = subprocess.run(
                [*shlex.split(command), *options, str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
        except (OSError, ValueError) as fault:
            fail(
                "c-preprocessor",
                f"the preprocessor `{command}` cannot be run: {fault}",
                None,
                helps=[
                    "leave `--cpp` out to use the built-in preprocessor, or name another: `--cpp 'gcc -E'`"
                ],
            )
    if done.returncode:
        fail(
            "c-preprocessor",
            f"`{command}` ends with status {done.returncode}",
            None,
            notes=done.stderr.strip().splitlines()[:5],
            helps=["`-I FOLDER` names a folder of headers, `-D NAME=VALUE` defines a macro"],
        )
    return re.sub(r"^# (\d+ )", r"#line \1", done.stdout, flags=re.MULTILINE)
