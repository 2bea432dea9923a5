"""``explain`` for a person: stage by stage, the sets in the paper's notation, equation numbers beside."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from polyloom.diagnostics import Diagnostic
from polyloom.ir.statements import Statement
from polyloom.ir.text.expressions import assignment_text
from polyloom.ir.text.host_programs import buffer_text
from polyloom.polyhedra.text.paper_notation import notation, placement_notation, set_notation
from polyloom.report.terminal import ascii_only, console
from polyloom.report.wafer.explain_task_view import Row, task_rows, task_title
from polyloom.report.wafer.resource_view import reduction_rows, resource_rows, resource_table
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.array_layout.order import layout_effects
from polyloom.wafer.border.adapters import Adapter
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.drivers import DriverEstimate
from polyloom.wafer.explain.document import chain_kind, driven_tasks, pes_text
from polyloom.wafer.explain.instruction_costs import instruction_costs
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.program.wafer_program import Survey


def print_explanation(
    analysis: LayerAnalysis, found: Survey | Diagnostic, out: Console | None = None
) -> None:
    """Print every stage of an analysis, and what the roles of PEs take, or why there are none.

    ``out``: None is stdout.
    """
    out = out or console()
    view = View(analysis, out)
    view.print()
    if isinstance(found, Survey):
        view.print_resources(found)


class View:
    """One analysis on one console."""

    def __init__(self, analysis: LayerAnalysis, out: Console) -> None:
        self.analysis = analysis
        self.out = out
        self.ascii = ascii_only(out)

    def print(self) -> None:
        """Print every stage."""
        self._stage("Program", self._program())
        self._stage("Ports and placement", self._rows(self._placed()))
        self._stage("Local memory of a PE", self._memory())
        self._stage("Tasks", self._tasks())
        if self.analysis.drivers:
            self._stage(
                "What drives statements: estimated cycles of an invocation", self._rows(self._drivers())
            )
        if self.analysis.reductions:
            self._stage("Reductions along lines", self._rows(reduction_rows(self.analysis)))
        for simd in self.analysis.simd:
            rows = task_rows(simd, self.analysis.arrays, self.analysis.options, ascii_only=self.ascii)
            self._stage(task_title(simd), self._rows(rows))

    def print_resources(self, found: Survey) -> None:
        """Print what each role of PE takes of the machine."""
        title = f"What the roles of PEs take of {self.analysis.options.machine.title}"
        rows = self._rows(resource_rows(found, ascii_only=self.ascii))
        self._stage(title, Group(resource_table(found), Text(), rows))

    def _stage(self, title: str, content: RenderableType) -> None:
        line = "-" if self.ascii else "─"
        self.out.print(Rule(Text(title, style="bold"), align="left", characters=line, style="dim"))
        self.out.print(content)
        self.out.print()

    def _rows(self, rows: Iterator[Row]) -> Table:
        table = Table(box=None, show_header=False, pad_edge=False, expand=True, padding=(0, 2, 0, 0))
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(ratio=1, overflow="fold")
        table.add_column(style="dim", justify="right", no_wrap=True)
        for row in rows:
            table.add_row(row.label, Text(row.text, style=row.style), row.equations)
        return table

    def _sets(self, text: str) -> str:
        return notation(text, ascii_only=self.ascii)

    def _program(self) -> Group:
        program = self.analysis.program
        kinds = {**dict.fromkeys(program.inputs, "input"), **dict.fromkeys(program.outputs, "output")}
        tensors = [Row(kinds.get(t.name, "internal"), buffer_text(t)) for t in program.tensors]
        bodies = [Row(s.name, f"{assignment_text(s)}{_ranges(s)}") for s in program.statements]
        return Group(self._rows(iter([*tensors, *bodies])))

    def _placed(self) -> Iterator[Row]:
        mapping, border = self.analysis.mapping, self.analysis.border
        if border.adapters:
            yield Row("given PEs", pes_text(border.given.grid))
            for adapter in border.adapters:
                yield Row(f"{adapter.tensor} at the border", _adapter(adapter))
        yield Row("compute PEs" if border.adapters else "PEs", pes_text(mapping.grid))
        for name, ports in mapping.inputs.items():
            kind = "sparse " if name in mapping.sparse else ""
            yield Row(f"{kind}{name} in", placement_notation(ports, ascii_only=self.ascii), "(5)")
        for name, ports in mapping.outputs.items():
            kind = "sparse " if name in mapping.sparse else ""
            yield Row(f"{kind}{name} out", placement_notation(ports, ascii_only=self.ascii), "(6)")
        yield from self._residents()
        for name, placed in mapping.placement.items():
            yield Row(f"{name} on", placement_notation(placed, ascii_only=self.ascii), "(10)")

    def _residents(self) -> Iterator[Row]:
        program, mapping = self.analysis.program, self.analysis.mapping
        yield from (
            Row(f"{n} in", "in PE memory from the start") for n in program.inputs if n not in mapping.inputs
        )
        taken = {new: old for old, new in mapping.state}
        for name in (n for n in program.outputs if n not in mapping.outputs):
            place = f"; the next invocation has it as {taken[name]}" if name in taken else ""
            yield Row(f"{name} out", f"stays in PE memory{place}")

    def _memory(self) -> Group:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for heading in ("array", "type", "extents", "bytes"):
            table.add_column(heading, justify="right" if heading == "bytes" else "left", no_wrap=True)
        arrays = self.analysis.arrays.values()
        for array in arrays:
            table.add_row(array.name, array.type.value, self._extents(array), f"{array.bytes:,}")
        total = sum(array.bytes for array in arrays)
        room = self.analysis.options.machine.memory_bytes
        table.add_row("at most", "", f"{total / room:.1%} of {room:,}", f"{total:,}")
        return Group(table, self._rows(self._local_maps()))

    def _extents(self, array: LocalArray) -> str:
        times = " x " if self.ascii else " × "
        before, after = (times.join(map(str, e)) or "1" for e in (array.extent_before, array.shape))
        changed = "lying as" if array.order or array.reversed or array.padding else "enlarged to"
        return after if array.shape == array.extent_before else f"{before}, {changed} {after}"

    def _local_maps(self) -> Iterator[Row]:
        for array in self.analysis.arrays.values():
            yield Row(f"{array.tensor} kept", set_notation(array.elements, ascii_only=self.ascii), "(7)")
            yield Row(f"{array.tensor} where", self._sets(str(array.map_before)), "(9)")
            if array.shape != array.extent_before or array.reversed:
                plain = not array.order and not array.reversed
                yield Row("  enlarged" if plain else "  in memory", self._sets(str(array.map)))
            for effect in layout_effects(array):
                yield Row("  extension used", f"{effect.extension.value}: {effect.detail}")

    def _tasks(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column("when", no_wrap=True)
        table.add_column("what")
        for when, what in self._events():
            table.add_row(when, what)
        return table

    def _drivers(self) -> Iterator[Row]:
        """Yield the choices that were compared, the chosen one first; each as the map would say it."""
        compared = zip(self.analysis.drivers, self.analysis.compared, strict=True)
        for k, (estimate, other) in enumerate(compared):
            label, style = ("chosen", "") if k == 0 else ("or, in the map", "dim")
            found = (
                f"refused: {estimate.reason}" if estimate.cycles is None else f"about {estimate.cycles:,.0f}"
            )
            yield Row(label, f"{estimate.text}   {found}", style=style)
            if other is not None and k > 0:
                yield from (Row("", text, style=style) for text in _ways(other, estimate))

    def _events(self) -> Iterator[tuple[str, str]]:
        graph = self.analysis.graph
        for initialize in graph.initialize:
            yield "an invocation begins", f"{initialize.tensor}_local is set to {initialize.value_text}"
        for stream in graph.streams:
            kind = "value-position pairs" if stream.sparse else "dense"
            arrives = f"{stream.tensor} arrives from the {stream.side.value}"
            driven = [t.name for t in graph.compute if t.stream is stream]
            stored = [f"{s.stream.tensor} is stored" for s in graph.stores if s.stream is stream]
            yield arrives, "; ".join([*driven, *stored]) + f"   ({kind})"
        for task in graph.compute:
            if task.stream is None:
                yield "its operands are complete", task.name
        for result in graph.results:
            yield from ((f"{result.statement.name} is complete", _chain(c)) for c in result.steps)


def _ways(analysis: LayerAnalysis, estimate: DriverEstimate) -> Iterator[str]:
    """Yield what the statements, driven so, would be done by."""
    for task in driven_tasks(analysis, estimate):
        costs = dict.fromkeys(instruction_costs(task, analysis.arrays, analysis.options))
        found = [f"{cost.name}, {cost.text}" for cost in costs] or [", ".join(task.instructions) or "loops"]
        yield from (f"{task_title(task)}: {text}" for text in found)


def _adapter(adapter: Adapter) -> str:
    line = "row" if adapter.side in (Side.NORTH, Side.SOUTH) else "column"
    place = f"adapters in the {adapter.side.value} {line}"
    lines = f"the {'columns' if line == 'row' else 'rows'} that"
    if adapter.inward:
        return f"{place} bring it from its ports to {lines} need it"
    return f"{place} bring it from {lines} have it to its ports"


def _chain(chain: Chain | Move) -> str:
    if isinstance(chain, Move):
        lines = "rows" if chain.high is Side.EAST else "columns"
        return f"{chain.tensor} goes along the {lines} to the PEs that read it"
    reduced = "is reduced" if chain_kind(chain) == "reduce" else "goes"
    if not chain.leaves:
        return f"{chain.tensor} {reduced} towards the {chain.side.value} and stays there"
    kind = ", value-position pairs" if chain.sparse else ""
    return f"{chain.tensor} {reduced} towards the {chain.side.value} and leaves there{kind}"


def _ranges(statement: Statement) -> str:
    if not statement.iterators:
        return ""
    return f"   for all ({', '.join(statement.iterators)}) in ({', '.join(map(str, statement.domain))})"
