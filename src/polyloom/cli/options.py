"""Arguments and options that several verbs share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from polyloom.diagnostics import Source
from polyloom.files import read_source
from polyloom.sources import is_loops, is_model
from polyloom.wafer.machine.model import machines
from polyloom.wafer.machine.options import Extension

_F = TypeVar("_F", bound=Callable[..., Any])

MODES = ("auto", "off", "hull", "exact", "enumerate")
SHAPES = ("auto", "chain", "two-phase", "tree")


class TableChoice(click.Choice):  # type: ignore[type-arg]
    """One of the names that a table has when the command line is read."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self.names = names
        self.case_sensitive = True

    @property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """All names."""
        return tuple(self.names())


class MachineChoice(TableChoice):
    """A machine's name, or a JSON file of one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take the name of a file as it is."""
        return value if str(value).endswith(".json") else super().convert(value, param, ctx)


def source_options(function: _F) -> _F:
    """Add SOURCE, ``--node``, ``-D`` and the hidden ``--debug``."""
    return _with_source(function, required=True)


def optional_source_options(function: _F) -> _F:
    """Add the same, SOURCE optional."""
    return _with_source(function, required=False)


def sources_options(function: _F) -> _F:
    """Add SOURCES, ``-D`` and the hidden ``--debug``."""
    sources = click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
    debug = click.option("--debug", is_flag=True, expose_value=False, hidden=True)
    return sources(_DEFINES(debug(function)))


def _with_source(function: _F, *, required: bool) -> _F:
    for option in reversed(
        (
            click.argument("source", type=click.Path(path_type=Path), is_eager=True, required=required),
            click.option("--node", metavar="NAME", help="The LAIR node or graph, where a file has several."),
            _DEFINES,
            click.option("--debug", is_flag=True, expose_value=False, hidden=True),
        )
    ):
        function = option(function)
    return function


def csl_options(function: _F) -> _F:
    """Add what the layout of a CSL program is compiled with, under the names of `cslc`."""
    for option in (
        click.option(
            "--import-path",
            "import_paths",
            metavar="DIR",
            multiple=True,
            type=click.Path(path_type=Path),
            help="Of CSL: where imports are found.",
        ),
        click.option("--colors", metavar="NAME:NUMBER,...", multiple=True, help="Those that are colors."),
        click.option(
            "--params", metavar="NAME:NUMBER,...", multiple=True, help="Of CSL: the layout's parameters."
        ),
        click.option(
            "--arch", type=click.Choice(["wse2", "wse3"]), default="wse2", help="Of CSL. Default wse2."
        ),
    ):
        function = option(function)
    return function


def map_option(function: _F) -> _F:
    """Add ``--map``, ``--size`` and ``--write-map``."""
    path = click.Path(path_type=Path)
    for option in (
        click.option(
            "--write-map", metavar="FILE", type=path, help="Write the map, with what was chosen, to a file."
        ),
        click.option(
            "--size", metavar="WxH", callback=_size, help="Columns and rows of PEs, in place of the map's."
        ),
        click.option(
            "--map",
            "map_file",
            metavar="MAP",
            type=path,
            help="The LAIR map: placement and ports. What it leaves open is chosen.",
        ),
    ):
        function = option(function)
    return function


def network_options(function: _F) -> _F:
    """Add ``--one-wafer``, ``--pes`` and ``--state``."""
    for option in (
        click.option(
            "--state",
            metavar="OLD=NEW",
            multiple=True,
            help="With --one-wafer: an input and the output that is its value for the next sample "
            "(repeatable).",
        ),
        click.option(
            "--pes",
            metavar="N",
            type=click.IntRange(min=1),
            help="With --one-wafer: how many PEs all layers may take together. Default: half of the "
            "machine's.",
        ),
        click.option(
            "--one-wafer",
            is_flag=True,
            help="Place all layers of SOURCE on one mesh, with streams between them; samples follow each "
            "other. `--map` and `--write-map` are folders of NAME.map.",
        ),
    ):
        function = option(function)
    return function


def check_of_network(pes: int | None, state: tuple[str, ...]) -> None:
    """Refuse options of ``--one-wafer`` where it is not given. Raises ``UsageError``."""
    if pes is not None or state:
        raise click.UsageError(f"`--{'state' if state else 'pes'}` is of `--one-wafer`")


def state_pairs(state: tuple[str, ...]) -> dict[str, str]:
    """Return what ``--state`` says, each old value with the new one. Raises ``UsageError``."""
    pairs = {}
    for text in state:
        old, equals, new = text.partition("=")
        if not equals or not old.strip() or not new.strip():
            raise click.UsageError("`--state` takes OLD=NEW, an input and an output")
        pairs[old.strip()] = new.strip()
    return pairs


def _size(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+)\s*[xX]\s*(\d+)\s*", text)
    if match is None or not 1 <= min(map(int, match.groups())) <= max(map(int, match.groups())) <= 65536:
        raise click.BadParameter(f"'{text}' is not of the form 4x4", ctx, parameter)
    return int(match.group(1)), int(match.group(2))


def simd_option(function: _F) -> _F:
    """Add ``--simd`` and ``--simd-without``."""
    help_ = "Which SIMD strategies are tried; auto: hull, then exact, then enumerate."
    mode = click.option("--simd", type=click.Choice(MODES), default="auto", show_default=True, help=help_)
    off = click.option(
        "--simd-without",
        "simd_without",
        type=ExtensionName(),
        metavar="NAME",
        multiple=True,
        is_eager=True,
        help="Switch off an extension of the paper's SIMD (repeatable); `--simd-without help` lists them.",
    )
    return mode(off(function))


class ExtensionName(click.Choice):  # type: ignore[type-arg]
    """The name of an extension; ``help`` prints them all, and ends."""

    def __init__(self) -> None:
        super().__init__([extension.value for extension in Extension])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name. Errors: ``click.BadParameter`` for another one."""
        if value == "help" and ctx is not None:
            rows = [(extension.value, f"{extension.meaning}.") for extension in Extension]
            formatter = ctx.make_formatter()
            with formatter.section("Extensions of the paper's SIMD, each on until it is switched off"):
                formatter.write_dl(rows)
            click.echo(formatter.getvalue(), nl=False)
            ctx.exit()
        return super().convert(value, param, ctx)


def reduction_option(function: _F) -> _F:
    """Add ``--reduction``."""
    help_ = "How results are reduced along a row or column of PEs; auto: what the cost model says."
    option = click.option(
        "--reduction", type=click.Choice(SHAPES), default="auto", show_default=True, help=help_
    )
    return option(function)


def machine_option(function: _F) -> _F:
    """Add ``--machine``."""
    help_ = "The machine model, or a JSON file that says what differs from one."
    option = click.option(
        "--machine", type=MachineChoice(machines), default="cs2", show_default=True, help=help_
    )
    return option(function)


def jobs_option(function: _F) -> _F:
    """Add ``--jobs`` and ``--cluster``."""
    help_ = "How many processes work at a time: on layers, on maps that are compared. Default 1; of `explain`"
    help_ += " of a model as many as there are processors."
    jobs = click.option("--jobs", metavar="N", type=click.IntRange(1, 1024), help=help_)
    help_ = "A dask scheduler, tcp://HOST:PORT, whose workers do that."
    return jobs(click.option("--cluster", metavar="ADDRESS", help=help_)(function))


def json_option(function: _F) -> _F:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def number(ctx: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse what is no number, which lies in every range."""
    if math.isnan(value):
        raise click.BadParameter("'nan' is no number", ctx, parameter)
    return value


def c_options(function: _F) -> _F:
    """Add ``--function``, ``-I`` and ``--cpp``, for C sources."""
    for option in reversed(
        (
            click.option("--function", metavar="NAME", help="The C function, where a file has several."),
            click.option(
                "-I",
                "include",
                metavar="FOLDER",
                multiple=True,
                type=click.Path(path_type=Path),
                help="A folder of C headers.",
            ),
            click.option(
                "--cpp",
                "preprocessor",
                metavar="COMMAND",
                help="A C preprocessor in place of the built-in one: --cpp 'gcc -E'.",
            ),
        )
    ):
        function = option(function)
    return function


def device_option(function: _F) -> _F:
    """Add ``--device`` for OpenCL."""
    return click.option("--device", metavar="D", help=f"An OpenCL device: {_NAMES}")(function)


def any_device_option(function: _F) -> _F:
    """Add ``--device`` for OpenCL and the processor."""
    native = "native: C on the processor, by the first C compiler or, say, native:clang; the default."
    native += " cuda: a GPU of NVIDIA, by its number or a part of its name: cuda:0."
    help_ = f"{native} Else an OpenCL device: {_NAMES} The variable POLYLOOM_DEVICE does the same."
    return click.option("--device", metavar="D", help=help_)(function)


_NAMES = "its number in `polyloom devices`, cpu, gpu, or a part of its name."


def threads_option(function: _F) -> _F:
    """Add ``--threads``."""
    help_ = "On native: how many threads run it; default: as many as this process may use."
    return click.option("--threads", metavar="N", type=click.IntRange(min=1), help=help_)(function)


def driver_patch_option(function: _F) -> _F:
    """Add ``--no-driver-patch``."""
    help_ = "Leave the driver's memory alone: PoCL on a processor that it does not know is no device then."
    option = click.option(
        "--no-driver-patch", "driver_patch", is_flag=True, default=True, flag_value=False, help=help_
    )
    return option(function)


def parameter_option(function: _F) -> _F:
    """Add ``--param``."""
    option = click.option(
        "--param",
        "parameters",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_parameters,
        help="An integer argument of the C function: --param n=1000.",
    )
    return option(function)


def scalar_option(function: _F) -> _F:
    """Add ``--param`` for values of any type."""
    option = click.option(
        "--param",
        "parameters",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_scalars,
        help="A scalar argument of the C function: --param n=1000 --param alpha=1.5.",
    )
    return option(function)


def c_scalar_option(function: _F) -> _F:
    """Add ``--param`` for values of any type, of which integers matter: a program is looked at, not run."""
    option = click.option(
        "--param",
        "parameters",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_scalars_of_c,
        help="A scalar argument of the C function: --param n=1000. Loops depend on integers alone.",
    )
    return option(function)


def _scalars_of_c(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, int | float]:
    if values:
        _check_of_c(ctx, parameter)
    return _scalars(ctx, parameter, values)


def _scalars(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, int | float]:
    if values:
        _check_not_of_model(ctx, parameter)
    return {name: _scalar(ctx, parameter, text) for name, text in _defines(ctx, parameter, values).items()}


def _check_not_of_model(ctx: click.Context, parameter: click.Parameter) -> None:
    """Refuse arguments of a function where the source is a model, whose inputs are tensors."""
    source = ctx.params.get("source")
    if source is not None and is_model(source):
        raise click.BadParameter("a model has no such arguments: give sizes with `-D NAME=8`", ctx, parameter)


def _check_of_c(ctx: click.Context, parameter: click.Parameter) -> None:
    """Refuse integer arguments of a function where the source is none of C."""
    _check_not_of_model(ctx, parameter)
    if ctx.params.get("source") is not None and not _is_c(ctx):
        raise click.BadParameter("it is of C: give sizes of a layer with `-D NAME=8`", ctx, parameter)


def _scalar(ctx: click.Context, parameter: click.Parameter, text: str) -> int | float:
    for kind in (lambda t: int(t, 0), float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise click.BadParameter(f"'{text}' is no number", ctx, parameter)


def database_option(function: _F) -> _F:
    """Add ``--database``."""
    help_ = "The file of tuning results; default: one for each user."
    return click.option("--database", metavar="FILE", type=click.Path(path_type=Path), help=help_)(function)


def reductions_option(function: _F) -> _F:
    """Add ``--reductions``."""
    option = click.option(
        "--reductions",
        type=click.Choice(["detect", "stated", "ignore"]),
        default="detect",
        show_default=True,
        help="Combine operators: found in the source, only from `#pragma mdh`, or none.",
    )
    return option(function)


def schedule_option(function: _F) -> _F:
    """Add ``--schedule``."""
    help_ = "Of C: a schedule tree in isl's text, in place of ours; `explain --schedule-tree` prints one."
    option = click.option(
        "--schedule", metavar="FILE", type=click.Path(path_type=Path), callback=_schedule, help=help_
    )
    return option(function)


def _schedule(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Source | None:
    """Read the file; whatever the source is, there must be one."""
    if path is None:
        return None
    if ctx.params.get("source") is not None and not _is_c(ctx):
        raise click.BadParameter("it is of C", ctx, parameter)
    return read_source(path)


def fp_option(function: _F) -> _F:
    """Add ``--fp``."""
    option = click.option(
        "--fp",
        type=click.Choice(["reassociate", "strict"]),
        default="reassociate",
        show_default=True,
        help="Of C: sums of floats in any order, or in the source's, each rounded as the C compiler rounds.",
    )
    return option(function)


def _parameters(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    if values:
        _check_of_c(ctx, parameter)
    found: dict[str, int] = {}
    for text in values:
        name, equals, value = (part.strip() for part in text.partition("="))
        try:
            number_ = int(value, 0)
        except ValueError:
            number_ = None
        if not equals or not name or number_ is None:
            raise click.BadParameter(f"'{text}' is not of the form NAME=INTEGER", ctx, parameter)
        if name in found:
            raise click.BadParameter(f"'{name}' is given twice", ctx, parameter)
        found[name] = number_
    return found


def _is_c(ctx: click.Context) -> bool:
    """Whether the source, which is read before the options, is a C file: there a macro needs no value."""
    source = ctx.params.get("source")
    return source is not None and is_loops(source)


def _defines(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if _is_c(ctx) and name.strip().isidentifier():
            equals, value = "=", value if equals else "1"
        elif not equals or not name.strip() or not value.strip():
            raise click.BadParameter(f"'{text}' is not of the form NAME=VALUE", ctx, parameter)
        if name.strip() in found:
            raise click.BadParameter(f"'{name.strip()}' is given twice", ctx, parameter)
        found[name.strip()] = value.strip()
    return found


_DEFINES = click.option(
    "-D",
    "defines",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_defines,
    help="A LAIR size or type parameter (-D M=32 -D T=float32), a C macro, or a size of a model.",
)
