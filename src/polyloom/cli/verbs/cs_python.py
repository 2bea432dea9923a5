"""``polyloom cs-python``: the host program of a CSL program."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(script: Path, arguments: tuple[str, ...]) -> None:
    """Run the Python file SCRIPT with ARGUMENTS; its imports of the vendor's SDK find Polyloom's simulator.

    The modules have the SDK's public names (`cerebras.sdk...`). This is not the vendor's product, and
    contains nothing of it; programs run on the simulated wafer only. What programs print goes to `sim.log`
    in the current folder.
    """
    from polyloom.csl.host.script import run_script

    status = run_script(script, arguments)
    if status:
        raise SystemExit(status)
