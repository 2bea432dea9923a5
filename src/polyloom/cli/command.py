"""The command ``polyloom``: verbs, and what becomes of errors.

Exit status: 0 done; 1 the program or its input is wrong; 2 wrong usage; 3 understood, but Polyloom cannot
express it; 70 a fault of Polyloom itself.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

import click

from polyloom.cli.supervise import INTERRUPTED, insisting
from polyloom.diagnostics import Diagnostic, InternalFault, PolyloomError, error, near, visible

INTERNAL = 70

VERBS = {
    "show": "What was understood of a source.",
    "explain": "Every stage of the wafer back end, with its sets, and why.",
    "compile": "C or CSL for every PE, or a C program whose loops are parallel C, OpenCL or CUDA.",
    "simulate": "Run the compiled code on a simulated wafer.",
    "run": "Run a layer, a model or a C function on the processor, or an OpenCL device.",
    "tune": "Search for the fastest schedules of a program on a device.",
    "bench": "Time C loops beside what a C compiler makes of them.",
    "devices": "What programs can run on: the processor, OpenCL devices.",
    "trace": "Every intermediate tensor, by the evaluator.",
    "report": "Two runs side by side, from their pages.",
    "check": "What is wrong, dangerous or slow in a CSL program.",
    "cslc": "A CSL program compiled for the simulated wafer, by the vendor's command line.",
    "cs-python": "The host program of a CSL program, run on the simulated wafer.",
    "csl-test": "CSL programs of a folder, run by their own commands.",
    "examples": "Examples to try, and to copy.",
    "docs": "The documents, page by page.",
}

EXAMPLES = {
    "show": ("show model.onnx", "show layer.lair --as mdh", "show program.c --as scop --json"),
    "explain": ("explain program.c", "explain layer.lair --map layer.map --json"),
    "compile": (
        "compile program.c --target c -o out",
        "compile layer.lair --map layer.map --target wafer -o out",
        "compile layer.lair --map layer.map --target csl --arch wse3 -o out",
    ),
    "simulate": ("simulate layer.lair --map layer.map --check", "simulate program.c --param n=6 --size 3x2"),
    "run": ("run model.onnx --check", "run program.c --param n=1000 --beside 'cc -O3'"),
    "tune": ("tune program.c --param n=1000 --budget 60",),
    "bench": ("bench program.c --param n=1000",),
    "report": ("report A.html B.html -o both.html",),
    "trace": ("trace model.onnx --inputs I.npz --compare R.npz",),
    "devices": ("devices", "devices --json"),
    "check": ("check layout.csl --arch wse3 --params=width:4,size:16",),
    "cslc": ("cslc layout.csl --arch=wse3 --fabric-dims=11,6 --fabric-offsets=4,1 --memcpy -o out",),
    "cs-python": ("cs-python run.py --name out", "cs-python --summary --report R.html run.py --name out"),
    "csl-test": ("csl-test sdk-examples --jobs 2", "csl-test sdk-examples --only gemv --show"),
    "examples": ("examples", "examples -o examples"),
    "docs": ("docs", "docs models"),
}
"""Of each verb, under its help."""

ASK_NOTHING = frozenset(("devices", "report", "examples", "docs", "check", "cslc", "cs-python", "csl-test"))
"""Verbs that never ask isl anything."""


class Verbs(click.Group):
    """Imports a verb's module when the verb is used, so that the others cost nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which one uses them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a verb."""
        if cmd_name not in VERBS:
            return None
        command = import_module(f"polyloom.cli.verbs.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        if command.epilog is None and cmd_name in EXAMPLES:
            command.epilog = "\b\nExamples:\n" + "\n".join(
                f"  polyloom {line}" for line in EXAMPLES[cmd_name]
            )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a verb; of a word near a verb, the error says which.

        ``help run`` is ``run --help``.
        """
        if args == ["help"]:
            click.echo(ctx.get_help())
            ctx.exit()
        if args[0] == "help":
            args = [args[1], "--help"]
        if meant := near(args[0], VERBS):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant!r}?")
        return super().resolve_command(ctx, args)

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
    """A polyhedral compiler of layers, models and C loops: to SIMD code for a wafer, to C, to OpenCL."""


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit status."""
    _print_any_name()
    if "--json" in arguments:
        from polyloom.cli.messages import begin_documents

        begin_documents()
    try:
        with insisting(), _debugging("--debug" in arguments), _limited(arguments):
            status = polyloom.main(args=arguments, prog_name="polyloom", standalone_mode=False)
            sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as fault:
        fault.show()
        _errors_as_json([error("usage", fault.format_message())], arguments)
        return fault.exit_code
    except PolyloomError as fault:
        from polyloom.cli.messages import print_diagnostics

        print_diagnostics(fault.diagnostics)
        _errors_as_json(fault.diagnostics, arguments)
        return fault.exit_status
    except InternalFault as fault:
        from polyloom.cli.messages import print_diagnostics

        if "--debug" in arguments:
            click.echo(fault.trace, err=True)
        print_diagnostics(fault.diagnostics)
        return fault.exit_status
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return 0
    except SystemExit as left:  # rich and click leave so where nobody reads their output any more
        if not (isinstance(left.__context__, BrokenPipeError) or _reader_is_gone()):
            raise
        _forget_stdout()
        return 0
    except OSError as fault:
        if fault.errno not in _OF_THE_SYSTEM:
            _report_fault(fault, debug="--debug" in arguments)
            return INTERNAL
        _report_refusal(fault)
        return 1
    except MemoryError as fault:
        _report_shortage(fault)
        return 1
    except Exception as fault:
        _report_fault(fault, debug="--debug" in arguments)
        return INTERNAL


def _errors_as_json(diagnostics: Sequence[Diagnostic], arguments: list[str]) -> None:
    """Print errors as a document too, where one was asked for."""
    if "--json" in arguments:
        from polyloom.cli.messages import print_errors

        print_errors(diagnostics)


def _print_any_name() -> None:
    """Let names of files that are no text be printed with escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _reader_is_gone() -> bool:
    if not hasattr(select, "poll"):
        return False
    waiting = select.poll()
    waiting.register(sys.stdout.fileno(), 0)
    return any(events & select.POLLERR for _, events in waiting.poll(0))


def _debugging(wanted: bool) -> AbstractContextManager[None]:
    """Verify programs after each pass, if that is wanted."""
    if not wanted:
        return nullcontext()
    from polyloom.ir.verification.passes import verified

    return verified()


def _limited(arguments: list[str]) -> AbstractContextManager[None]:
    """Limit what isl does for a verb."""
    if not any(a in VERBS and a not in ASK_NOTHING for a in arguments):
        return nullcontext()
    from polyloom.polyhedra.effort import refusing

    return refusing("all that the command asks for")


def _forget_stdout() -> None:
    """Whoever read the output is gone: let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_OF_THE_SYSTEM = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EROFS,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
    )
)
"""What the system refuses anybody: no room, no descriptors, a disk that fails."""


def _report_refusal(fault: OSError) -> None:
    from polyloom.cli.messages import print_diagnostics

    where = f" (`{fault.filename}`)" if fault.filename else ", where the output goes or temporary files are"
    helps = ["make room; the variable TMPDIR names another folder for temporary files"]
    print_diagnostics([error("system-refusal", f"the system says: {fault.strerror}{where}", helps=helps)])
    _forget_stdout()


def _report_shortage(fault: MemoryError) -> None:
    from polyloom.cli.messages import print_diagnostics

    notes = [str(fault)] if str(fault) else []
    helps = ["smaller sizes need less, or a machine with more memory has it"]
    print_diagnostics([error("memory", "the memory does not suffice", notes=notes, helps=helps)])


def _report_fault(fault: Exception, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(fault)
    what = visible(f"{type(fault).__name__}: {fault}".strip().partition("\n")[0])
    click.echo(f"polyloom: this is a fault of Polyloom, not yours: {what}", err=True)
    click.echo("Please report it with the command and its files.", err=True)
    if not debug:
        click.echo("`--debug` shows where it happened.", err=True)
