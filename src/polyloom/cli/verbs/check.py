"""``polyloom check``: what is wrong, dangerous or slow in a CSL program."""

from __future__ import annotations

from pathlib import Path

import click

from polyloom.cli.messages import diagnostic_document, print_document
from polyloom.cli.options import csl_options, json_option
from polyloom.diagnostics import Diagnostic, Severity
from polyloom.report.progress import status_line


@click.command()
@click.argument("layout", type=click.Path(path_type=Path))
@csl_options
@click.option("--no-remarks", is_flag=True, help="Errors and warnings only.")
@json_option
def command(
    layout: Path,
    arch: str,
    params: tuple[str, ...],
    colors: tuple[str, ...],
    import_paths: tuple[Path, ...],
    no_remarks: bool,
    as_json: bool,
) -> int:
    """Check the CSL program of LAYOUT: errors, what may hang or go wrong (warnings), what is slow (remarks).

    Exit status 1 if there are errors.
    """
    from polyloom.csl.compile import faults
    from polyloom.csl.host.options import numbers
    from polyloom.csl.lint import check

    given = numbers(params, "--params"), numbers(colors, "--colors")
    with status_line(f"checking {layout.name}"):
        found = check(layout, arch, *given, import_paths)
        if not any(d.severity is Severity.ERROR for d in found):
            found = [*faults(layout, arch, *given, import_paths), *found]
    if no_remarks:
        found = [d for d in found if d.severity is not Severity.REMARK]
    _print(found, as_json=as_json)
    return 1 if any(d.severity is Severity.ERROR for d in found) else 0


def _print(found: list[Diagnostic], *, as_json: bool) -> None:
    from polyloom.cli.messages import print_diagnostics

    if as_json:
        kinds = {s: [diagnostic_document(d) for d in found if d.severity is s] for s in Severity}
        print_document({f"{severity.value}s": listed for severity, listed in kinds.items()})
        return
    if found:
        print_diagnostics(found)
    counts = [
        f"{n} {s.value}{'' if n == 1 else 's'}"
        for s in Severity
        if (n := sum(d.severity is s for d in found)) or s is Severity.ERROR
    ]
    click.echo(", ".join(counts).replace("0 errors", "no errors"))
