"""Builds the documentation site: the documents, tutorials that are executed, and pages made from the program.

    python docs/site/build.py [FOLDER] [--gallery all|some]     into build/site, warnings are errors

The pages of docs/, the tutorials beside this file and what is generated are put into one folder, which Sphinx
reads. Links that leave docs/ lead to the repository's page.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import polyloom
from polyloom import shipped
from polyloom.cli.command import VERBS
from polyloom.cli.command import polyloom as command_line

HERE = Path(__file__).parent
DOCS = HERE.parent
ROOT = DOCS.parent
REPOSITORY = "https://github.com/polyloom/polyloom/blob/main/"
WIDTH = 100
EVERY = 6
"""``--gallery some``: one layer in so many."""


def main() -> None:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--gallery", choices=("all", "some"), default="some")
    given = parser.parse_args()
    source = given.folder.resolve() / "source"
    shutil.rmtree(source, ignore_errors=True)
    gather(source)
    gallery(source, 1 if given.gallery == "all" else EVERY)
    sys.exit(sphinx(source, given.folder.resolve() / "html"))


def gather(source: Path) -> None:
    """Put the pages together: those of docs/, the tutorials, and the references made from the program."""
    shutil.copytree(HERE / "tutorials", source / "tutorials")
    shutil.copytree(DOCS / "pictures", source / "pictures")
    (source / "tutorials" / "examples").symlink_to(shipped.folder("examples"))
    for page in sorted(DOCS.glob("*.md")):
        if page.name != "README.md":
            text = leading_out(page.read_text(encoding="utf-8"))
            (source / page.name).write_text(text, encoding="utf-8")
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = from_the_root((ROOT / name).read_text(encoding="utf-8"))
        (source / name.lower()).write_text(text, encoding="utf-8")
    shutil.copy(HERE / "conf.py", source)
    (source / "ipython" / "profile_default" / "startup").mkdir(parents=True)
    shutil.copy(HERE / "shell.py", source / "ipython" / "profile_default" / "startup")
    shutil.copy(HERE / "index.md", source)
    (source / "command_line.md").write_text(command_line_page(), encoding="utf-8")
    (source / "functions.md").write_text(functions_page(), encoding="utf-8")


def leading_out(text: str) -> str:
    """Return a page of docs/ whose links out of docs/ lead to the repository."""
    return re.sub(r"\]\(\.\./([^)]*)\)", rf"]({REPOSITORY}\1)", text)


def from_the_root(text: str) -> str:
    """Return a page of the repository's root as one that lies beside those of docs/."""
    inside = re.sub(r"\]\(docs/([^)]*)\)", r"](\1)", text).replace("```walk", "```text")
    inside = re.sub(r"\]\(([A-Z]+)\.md", lambda link: link.group(0).lower(), inside)
    return re.sub(r"\]\((?!https?:|#|\w+\.md)([^)]*)\)", rf"]({REPOSITORY}\1)", inside)


def command_line_page() -> str:
    """Return every verb with its help, as the command prints it."""
    parts = ["# The command line", "", "What `polyloom VERB --help` prints. [](interface.md) says more."]
    for verb in VERBS:
        context = click.Context(
            command_line, info_name="polyloom", max_content_width=WIDTH, terminal_width=WIDTH
        )
        command = command_line.get_command(context, verb)
        assert command is not None
        inner = click.Context(command, context, verb, max_content_width=WIDTH, terminal_width=WIDTH)
        parts += ["", f"## {verb}", "", "```text", command.get_help(inner), "```"]
    return "\n".join(parts) + "\n"


def functions_page() -> str:
    """Return the functions and classes of ``import polyloom``, with what their docstrings say."""
    parts = [
        "# Functions and classes",
        "",
        "What `import polyloom` offers; [](python.md) begins with examples.",
    ]
    classes = [name for name in sorted(polyloom.__all__) if isinstance(getattr(polyloom, name), type)]
    functions = [name for name in sorted(polyloom.__all__) if name not in classes]
    for heading, names, directive in (("Functions", functions, "function"), ("Classes", classes, "class")):
        parts += ["", f"## {heading}", "", "```{eval-rst}"]
        for name in names:
            parts += [
                f".. auto{directive}:: polyloom.{name}",
                *(["   :members:", ""] if directive == "class" else [""]),
            ]
        parts.append("```")
    return "\n".join(parts) + "\n"


def gallery(source: Path, every: int) -> None:
    """Simulate layers with their reports, and list them beside a command for each."""
    (source / "extra" / "reports").mkdir(parents=True)
    rows = list(_reports(source / "extra" / "reports", every))
    head = [
        "# Gallery",
        "",
        "Layers from the examples (`polyloom examples`), simulated when this page was built. Each report is",
        "a page of its own: cycles, the processing elements as a heat map, time lines, sets, code.",
        "",
        "| layer | cycles | command |",
        "|---|---:|---|",
    ]
    (source / "gallery.md").write_text("\n".join([*head, *rows]) + "\n", encoding="utf-8")


def _reports(folder: Path, every: int) -> Iterator[str]:
    layers = [example for example in shipped.examples() if example.file.endswith(".lair")]
    for example in layers[::every]:
        name = example.file.removesuffix(".lair")
        report = ["--report", str(folder / f"{name}.html")]
        words = [sys.executable, "-m", "polyloom", *example.command.split()[1:], *report]
        place = shipped.folder("examples").parent
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=True)
        cycles = re.search(r"^cycles +([\d,]+)", done.stdout, flags=re.MULTILINE)
        assert cycles is not None, done.stdout
        page = f'<a href="reports/{name}.html">{name}</a>'
        yield f"| {page} | {cycles.group(1)} | `{example.command}` |"


def sphinx(source: Path, target: Path) -> int:
    """Let Sphinx make the pages, with the verbs of this Python in front; return its exit status."""
    beside = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "IPYTHONDIR": str(source / "ipython"),
        "PATH": os.pathsep.join([beside, os.environ.get("PATH", "")]),
        "NO_COLOR": "1",
    }
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-q",
        str(source),
        str(target),
    ]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    main()
