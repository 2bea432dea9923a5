"""The command ``polyloom``: verbs, and what becomes of errors.

Exit status: 0 done; 1 the program or its input is wrong; 2 wrong usage; 3 understood, but Polyloom cannot
express it; 70 a fault of Polyloom itself.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from polyloom.diagnostics import PolyloomError

INTERNAL = 70
INTERRUPTED = 130
VERBS = {
    "show": "What was understood of a source.",
    "explain": "Every stage of the wafer back end, with its sets, and why.",
    "compile": "C code for every PE, or a C program whose loops run on OpenCL.",
    "simulate": "Run the compiled code on a simulated wafer.",
    "run": "Run a layer, a model or a C function on an OpenCL device.",
    "tune": "Search for the fastest schedules of a program on a device.",
    "devices": "The OpenCL devices that there are.",
    "trace": "Every intermediate tensor, by the evaluator.",
}


class Verbs(click.Group):
    """Imports a verb's module when the verb is used, so that the others cost nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which one uses them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a verb."""
        if cmd_name not in VERBS:
            return None
        command = import_module(f"polyloom.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.command(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 done, 1 wrong input, 2 wrong usage, 3 cannot be expressed, 70 our fault.",
)
@click.version_option(package_name="polyloom", message="polyloom %(version)s")
@click.option("--debug", is_flag=True, expose_value=False, help="Show where a fault of Polyloom happened.")
def polyloom() -> None:
    """A polyhedral compiler: layers, models and C loops, to SIMD code for a simulated wafer or to OpenCL."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit status."""
    try:
        status = polyloom.main(args=arguments, prog_name="polyloom", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as fault:
        fault.show()
        return fault.exit_code
    except PolyloomError as fault:
        from polyloom.cli.messages import print_diagnostics

        print_diagnostics(fault.diagnostics)
        return fault.exit_status
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return 0
    except Exception as fault:
        _report_fault(fault, debug="--debug" in arguments)
        return INTERNAL


def _forget_stdout() -> None:
    """Whoever read the output is gone: let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_fault(fault: Exception, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(fault)
    what = f"{type(fault).__name__}: {fault}".strip().partition("\n")[0]
    click.echo(f"polyloom: this is a fault of Polyloom, not yours: {what}", err=True)
    click.echo("Please report it with the command and its files.", err=True)
    if not debug:
        click.echo("`--debug` shows where it happened.", err=True)
