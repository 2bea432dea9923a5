"""Mutants of ``mdh/``: kernels, schedules and their costs, arguments, keys, checks."""

from __future__ import annotations

from mutant import Mutant, Probe

MUTANTS = [
    Mutant(
        "mdh/emit_tiles",
        "state.lines.add(BARRIER_OF_ALL_MEMORY if self._copies_what_is_written() else BARRIER)",
        "pass",
        Probe("mdh_probes.clean", ("copying", "matmul"), driver="oclgrind"),
    ),
    Mutant(
        "mdh/emit_chunks",
        "views = tuple(self._at_chunk(b, rank, offset=-1) for b in before)",
        "views = tuple(self._at_chunk(b, rank) for b in before)",
        Probe("test_chunks.test_a_scan_runs_in_chunks", (16411, True)),
    ),
    Mutant(
        "mdh/emit_chunks",
        "operands = [*left, *carried]",
        "operands = [*left, *left]",
        Probe("test_chunks.test_a_scan_runs_in_chunks", (16411, True)),
    ),
    Mutant(
        "mdh/emit_chunks",
        "initial=self._started(starts, carried),",
        "initial=tuple(carried),",
        Probe("test_chunks.test_a_scan_runs_in_chunks", (16411, True)),
    ),
    Mutant(
        "mdh/emit_chunks",
        "written=self.inside(hom.written),",
        "written=None,",
        Probe("test_chunks.test_points_that_do_not_count_and_results_that_are_not_stored"),
    ),
    Mutant(
        "mdh/emit_chunks",
        "term, out = Constant(neutral, result.type), View(bins.name, everywhere)",
        "term, out = Constant(1, result.type), View(bins.name, everywhere)",
        Probe("mdh_probes.histogram"),
    ),
    Mutant("mdh/legality", "if facts.vector_is_reduced:", "if False:", Probe("mdh_probes.legal")),
    Mutant(
        "mdh/legality", "if any(facts.is_tiled(d) for d in shared):", "if False:", Probe("mdh_probes.legal")
    ),
    Mutant("mdh/legality", "if facts.guard_uses(d):", "if False:", Probe("mdh_probes.legal"), fast=True),
    Mutant(
        "mdh/legality",
        "if no_neutral and facts.hom.guard is not None and (facts.split or facts.waits):",
        "if False:",
        Probe("mdh_probes.legal"),
    ),
    Mutant("mdh/legality", "if schedule.strided[d]:", "if False:", Probe("mdh_probes.legal")),
    Mutant(
        "mdh/cost_model", "/ (8.0 * lanes))", "* (8.0 * lanes))", Probe("mdh_probes.more_items_are_faster")
    ),
    Mutant(
        "mdh/cost_model",
        "max(busy, 1e-3)) / clock",
        "min(1.0, 1 / max(busy, 1e-3))) / clock",
        Probe("mdh_probes.more_groups_are_faster"),
    ),
    Mutant(
        "mdh/cost_model",
        "levels = [compute, *self.memory.cycles]",
        "levels = [compute]",
        Probe("test_schedules.test_the_model_knows_blocking_from_none"),
    ),
    Mutant(
        "mdh/step_model",
        "return 1.0 if over <= 0 else 1.15 + 0.06 * over",
        "return 1.0",
        Probe("mdh_probes.spills_are_slower"),
    ),
    Mutant(
        "mdh/checking",
        "return 4.0 * self._terms * float(np.finfo(wanted.dtype).eps) * scale",
        'return float("inf")',
        Probe("mdh_probes.checked", ("small",)),
    ),
    Mutant(
        "mdh/checking",
        "if worst > self._tolerance(wanted):",
        "if False:",
        Probe("mdh_probes.checked", ("nan",)),
    ),
    Mutant(
        "mdh/checking",
        "[n - size for n, size in zip(extents, sizes, strict=True)]]",
        "[0] * len(sizes)]",
        Probe("mdh_probes.checked", ("large",)),
    ),
    Mutant(
        "mdh/verdict", "if exact or comparison.passed:", "if comparison.passed:", Probe("mdh_probes.exact")
    ),
    Mutant(
        "mdh/verdict",
        "widened = {name: expected.bounds * bound for",
        "widened = {name: np.inf * bound for",
        Probe("mdh_probes.judged"),
        fast=True,
    ),
    Mutant(
        "mdh/verdict",
        "return Verdict(c.passed, exact,",
        "return Verdict(True, exact,",
        Probe("mdh_probes.judged"),
    ),
    Mutant(
        "mdh/verdict",
        "bounds = _coarse_bounds(wanted) if bounded is None else bounded.bounds",
        "bounds = _coarse_bounds(wanted)",
        Probe("mdh_probes.judged"),
    ),
    Mutant(
        "mdh/arguments",
        "return not overlap(a[of_a] if a.ndim else a, b[of_b] if b.ndim else b)",
        "return True",
        Probe("test_arguments.test_what_is_refused"),
    ),
    Mutant(
        "mdh/arguments",
        "role in (Role.OUTPUT, Role.UPDATED)}",
        "role is Role.OUTPUT}",
        Probe("test_arguments.test_what_is_refused"),
        fast=True,
    ),
    Mutant(
        "mdh/arguments",
        "return _solved(inner, size // factor) if size % factor == 0 else None",
        "return _solved(inner, size // factor)",
        Probe("mdh_probes.extents"),
    ),
    Mutant(
        "mdh/arguments",
        "if array.dtype != buffer.type.dtype:",
        "if False:",
        Probe("test_arguments.test_what_is_refused"),
    ),
    Mutant(
        "mdh/signature",
        'return f"{names.buffer(buffer)}[{_joined(indices, names)}]"',
        "return names.buffer(buffer)",
        Probe("test_signature.test_types_and_accesses_count"),
    ),
    Mutant(
        "mdh/signature",
        "return Key(digest, sizes, device,",
        'return Key(digest, sizes, "",',
        Probe("mdh_probes.keys"),
    ),
    Mutant(
        "mdh/fuse",
        "return work.launches > 2 and work.points * costs.serial + costs.launch < apart",
        "return True",
        Probe("mdh_probes.loops_are_fused_where_that_gains"),
    ),
    Mutant(
        "mdh/fuse",
        "return tuple(part for node in nodes for part in self._node(node, around))",
        "return tuple(part for node in reversed(nodes) for part in self._node(node, around))",
        Probe("mdh_probes.compiled", ("in_turn",)),
    ),
    Mutant(
        "mdh/runtime",
        "if self.last.get(position) != value:",
        "if position not in self.last:",
        Probe("mdh_probes.launched_again"),
    ),
    Mutant(
        "mdh/emit_tiles",
        "self._exact(d, n % size)",
        "self._exact(d, 1)",
        Probe("mdh_probes.wild", ("best_record_in_order", 1)),
    ),
    Mutant("mdh/emit_tiles", "before *= count", "before *= 1", Probe("mdh_probes.copying", ("turned",))),
    Mutant(
        "mdh/emit_tiles",
        'end = state.constant(state.variable(d, "end"), minimum(end, state.hom.extents[d]))',
        "pass",
        Probe("mdh_probes.clean", ("wild", "jacobi", 3), driver="oclgrind"),
    ),
    Mutant(
        "mdh/emit_store",
        "return state.hom.iterators[place.vector] in names_in(written)",
        "return False",
        Probe("mdh_probes.wild", ("gemm_written", 0)),
    ),
    Mutant(
        "mdh/emit_store",
        "whole = conditions([condition, state.condition(state.hom.written, place)])",
        "whole = condition",
        Probe("mdh_probes.wild", ("gemm_written", 0)),
    ),
    Mutant(
        "mdh/copies",
        "start = state.low[d] if step > 0 else plus(state.high[d], -1)",
        "start = state.low[d]",
        Probe("mdh_probes.copying", ("turned",)),
    ),
    Mutant(
        "mdh/emit_tiles",
        "self.state.lines.add(BARRIER)",
        "pass",
        Probe("mdh_probes.clean", ("copying", "matmul"), driver="oclgrind"),
    ),
    Mutant(
        "mdh/emit_body", "return n % step < width", "return True", Probe("mdh_probes.wild", ("matmul", 0))
    ),
    Mutant(
        "mdh/emit_body",
        'whole = f"({count}) / {width} * {width}"',
        'whole = f"({count}) / {width} * {width} + 1"',
        Probe("mdh_probes.wild", ("dot", 2)),
    ),
    Mutant(
        "mdh/emit_body",
        "if not self.finishing or self._is_plain():",
        "if True:",
        Probe("mdh_probes.shared", ("largest",)),
        fast=True,
    ),
    Mutant(
        "mdh/emit_body",
        'with state.lines.block(f"if (!({first}))"):',
        'with state.lines.block("if (0)"):',
        Probe("mdh_probes.copying", ("matmul",)),
    ),
]
