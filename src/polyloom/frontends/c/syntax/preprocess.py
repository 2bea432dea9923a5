"""The C preprocessor: pcpp with headers of our own, the system's, or a command that the user names.

All give text with ``#line`` directives, which the parser follows.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
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
    "__restrict__": "restrict",
    "__restrict": "restrict",
    "__inline__": "inline",
    "__inline": "inline",
    "__const": "const",
    "__volatile__": "volatile",
    "__extension__": "",
    "__builtin_expect(x, c)": "((long)(x))",
    "_Thread_local": "",
    "__thread": "",
}
"""GNU spellings that the parser does not know."""

_SYSTEM = {"__asm__(...)": "", "__asm(...)": "", "__alignof__": "_Alignof", "__signed__": "signed"}
"""Further ones, of the system's headers."""

_SECONDS = 60
"""How long a preprocessor may take."""

_PLACED = re.compile(r"^[ \t]*#[ \t]*(?:line\b|\d).*$", re.MULTILINE)
"""``#line``: places are those of the text that is given, whatever it was made of."""
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+mdh\b.*$", re.MULTILINE)
_EMPTY_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]*(//.*|/\*.*\*/[ \t]*)?$", re.MULTILINE)
"""What C lets stand and pcpp falls over."""
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_INCLUDED_BOTH = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_HAS = re.compile(r"^[ \t]*#[ \t]*(?:el)?if\b.*\b__has_\w+[ \t]*\(", re.MULTILINE)
"""What only the compiler knows: whether it has a function, an attribute, a header."""
_TRICKY = re.compile(
    r"^[ \t]*#[ \t]*(?:if[ \t(]|elif\b|define[ \t]+\w+\(|pragma[ \t]+push_macro)|\\[ \t]*$|_Pragma|##",
    re.MULTILINE,
)
"""Where preprocessors may differ: conditions, macros with arguments, lines that go on."""
_NO_LINES = dict.fromkeys(map(ord, "\f\v\x1c\x1d\x1e\x85\u2028\u2029"), " ")
"""What ends a line for Python and not for C: form feeds between the functions of GNU's programs."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_MDH = re.compile(r"^([ \t]*)#([ \t]*)mdh\b", re.MULTILINE)


def preprocess(
    source: Source, defines: Mapping[str, str], include: Sequence[Path], command: str | None = None
) -> str:
    """Return the preprocessed text, with ``#line`` directives.

    ``include``: folders for ``#include``, before our own headers; the folder of the source comes first.
    ``command``: another preprocessor, ``gcc -E``; it gets ``-D`` and ``-I`` and the name of a file. Without
    one, the system's is asked for what ours cannot do: a header that it does not have. Macros of the system's
    compiler (``__GNUC__``) are defined, for it will build the program, and it is asked what it has
    (``__has_builtin(x)``).
    ``#mdh parallel(...)``, as md_poly prints it, is read as ``#pragma mdh parallel(...)``.

    Errors: ``c-preprocessor``. Source: md_poly, Listing 1.
    """
    if command is not None:
        return _external(source, defines, [*_folders(source, include), HEADERS], command)
    texts = list(own_texts(source, include))
    asked = any(_HAS.search(text) for text in texts)
    if asked and (found := preprocess_with_system(source, defines, include)) is not None:
        return found
    try:
        found = _pcpp(source, defines, [*_folders(source, include), HEADERS, INTRINSICS])
    except PolyloomError:
        other = preprocess_with_system(source, defines, include)
        if other is None:
            raise
        return other
    return _verified(found, source, defines, include) if any(map(_TRICKY.search, texts)) else found


def _verified(text: str, source: Source, defines: Mapping[str, str], include: Sequence[Path]) -> str:
    """Return what the system's preprocessor makes of the source and our headers, if that has other words."""
    compiler = _system_compiler()
    if compiler is None:
        return text
    folders = [*_folders(source, include), HEADERS, INTRINSICS]
    try:
        other = _external(source, defines, folders, f"{shlex.quote(compiler)} -O2 -E -nostdinc")
    except PolyloomError:
        return text
    return text if _words(text) == _words(other) else other


def _words(text: str) -> str:
    return "".join("".join(line.split()) for line in text.split("\n") if not line.lstrip().startswith("#"))


def own_texts(source: Source, include: Sequence[Path], *, angled: bool = False) -> Iterator[str]:
    """Yield the text of a file, and of those that it includes by ``#include "name"``, each once.

    ``angled``: also of those that it includes by ``#include <name>``, where they lie in the same folders.
    """
    ahead, seen = [(Path(source.name).parent, source.text)], set[Path]()
    while ahead:
        folder, text = ahead.pop()
        yield text
        for name in (_INCLUDED_BOTH if angled else _INCLUDED).findall(text):
            path = next((p for f in (folder, *include) if (p := (f / name).resolve()).is_file()), None)
            if path is not None and path not in seen:
                seen.add(path)
                ahead.append((path.parent, path.read_text(encoding="utf-8", errors="replace")))


def compilers_macros(*options: str) -> Mapping[str, str]:
    """Return what the system's C compiler defines before it reads anything, such as ``__GNUC__``.

    ``options``: of the compiler beside ``-O2``. Where there is none, nothing is defined.
    """
    compiler = _system_compiler()
    return {} if compiler is None else _predefined(compiler, options)


@cache
def _predefined(compiler: str, options: tuple[str, ...]) -> Mapping[str, str]:
    try:
        done = _run(shlex.quote(compiler), ["-O2", *options, "-dM", "-E", "-x", "c", os.devnull])
    except PolyloomError:
        return {}
    found = re.findall(r"^#define (\w+(?:\([^)]*\))?)(?: (.*))?$", done.stdout, re.MULTILINE)
    return {name: value for name, value in found if name not in _DIALECT}


def _system_compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def preprocess_with_system(source: Source, defines: Mapping[str, str], include: Sequence[Path]) -> str | None:
    """Return the text as the system's ``cc -E`` makes it, with its headers; None where it cannot."""
    compiler = _system_compiler()
    if compiler is None:
        return None
    folders = [*_folders(source, include), INTRINSICS]
    try:
        return _external(source, {**_SYSTEM, **defines}, folders, f"{shlex.quote(compiler)} -O2 -E")
    except PolyloomError:
        return None


def is_built(text: str) -> bool:
    """Whether the system's C compiler, if there is one, has nothing against a preprocessed text."""
    compiler = _system_compiler()
    if compiler is None:
        return False
    with work_folder() as folder:
        path = folder / "source.c"
        path.write_text(text, encoding="utf-8")
        command = f"{shlex.quote(compiler)} -std=gnu17 -fsyntax-only -w -x c"
        return _run(command, [str(path)]).returncode == 0


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
            self.define_named_in(input)
            return super().parsegen(_plain(input), *names)

        def define_named_in(self, text: str) -> None:
            """Define what the compiler does, as far as a text names it: there are hundreds."""
            for name in _WORD.findall(text):
                if (definition := of_compiler.pop(name, None)) is not None:
                    self.define(definition)
                    self.define_named_in(definition)

    given = {**_DIALECT, **defines}
    by_name = ((macro.partition("(")[0], f"{macro} {value}") for macro, value in compilers_macros().items())
    of_compiler = {name: definition for name, definition in by_name if name not in given}
    processor: Any = Quiet(lexer())
    processor.line_directive = "#line"
    for macro, value in given.items():
        processor.define(f"{macro} {value}")
        processor.define_named_in(value)
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


def _plain(text: str) -> str:
    return _PLACED.sub("", _EMPTY_PRAGMA.sub("", text.translate(_NO_LINES)))


def _expanded(line: str, processor: Any) -> str:
    """Return a pragma with its macros expanded, which no preprocessor does by itself."""
    lead, _, rest = line.partition("mdh")
    tokens = processor.expand_macros(processor.tokenize(rest))
    return f"{lead}mdh{''.join(token.value for token in tokens)}"


def _external(source: Source, defines: Mapping[str, str], folders: Sequence[Path], command: str) -> str:
    options = [f"-D{name}={value}" for name, value in {**_DIALECT, **defines}.items()]
    options += [f"-I{folder}" for folder in folders]
    text = as_pragmas(_PLACED.sub("", source.text))
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
