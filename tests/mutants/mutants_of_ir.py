"""Mutants of ``ir/``: what joins, what is folded, what is verified, what bounds say."""

from __future__ import annotations

from mutant import Mutant, Probe

MUTANTS = [
    Mutant(
        "ir/transform/fuse_maps",
        "return b.outputs[output] == b.inputs[start]",
        "return b.outputs[output].buffer == b.inputs[start].buffer",
        Probe("c_probes.evaluated", ("prefix_sums_of_few",)),
        fast=True,
    ),
    Mutant(
        "ir/transform/flatten_dimensions", "if far != near * size:", "if False:", Probe("ir_probes.flattened")
    ),
    Mutant(
        "ir/transform/flatten_dimensions",
        "return Index(tuple(row * a + b for a, b in pairs)",
        "return Index(tuple(a + b for a, b in pairs)",
        Probe("ir_probes.rows_are_one"),
    ),
    Mutant(
        "ir/integers",
        "return fold_nodes(body if known.value else otherwise, names, leaf)",
        "return fold_nodes(body, names, leaf)",
        Probe("ir_probes.branches"),
    ),
    Mutant(
        "ir/transform/specialise",
        "any(e == Number(0) and o.order is not Order.POINTWISE for",
        "any(e == Number(0) for",
        Probe("ir_probes.sums_of_nothing"),
    ),
    Mutant(
        "ir/transform/specialise",
        "return None if isinstance(known, Number) and known.value else known",
        "return None if isinstance(known, Number) else known",
        Probe("c_probes.evaluated", ("last_of_a_range",)),
    ),
    Mutant(
        "ir/verification/programs",
        "if target is not None and stored is not target:",
        "if False:",
        Probe("ir_probes.broken_rules"),
    ),
    Mutant(
        "ir/verification/programs",
        'yield f"the view of `{view.buffer}` uses a dimension that is reduced"',
        "yield from ()",
        Probe("ir_probes.broken_rules"),
    ),
    Mutant(
        "ir/verification/programs",
        "unknown = sorted(names_in(expression) - known.names)",
        "unknown = []",
        Probe("ir_probes.broken_rules"),
    ),
    Mutant(
        "ir/verification/written_elements",
        "if wrong is not None:",
        "if False:",
        Probe("oracle_probes.writes_are_verified"),
    ),
    Mutant(
        "ir/verification/passes",
        "return at_the_end(name, program) if _Switch.on else program",
        "return program",
        Probe("oracle_probes.passes_are_verified"),
    ),
    Mutant("ir/verification/passes", "verify(program)", "pass", Probe("oracle_probes.passes_are_verified")),
    Mutant(
        "ir/verification/comparison",
        "bound = np.broadcast_to(bounds.get(name, np.zeros(())), array.shape)",
        "bound = np.full(array.shape, np.inf)",
        Probe("oracle_probes.comparisons"),
        fast=True,
    ),
    Mutant(
        "ir/verification/comparison",
        "units = np.where(known, units, 0.0)",
        "units = np.where(np.isfinite(units), units, 0.0)",
        Probe("oracle_probes.comparisons"),
    ),
    Mutant(
        "ir/verification/comparison",
        "same = (found == wanted) | (np.isnan(a) & np.isnan(b))",
        "same = (found == wanted) | np.isnan(a)",
        Probe("oracle_probes.comparisons"),
    ),
    Mutant(
        "ir/rounding/programs",
        "found = {name: np.zeros(arrays[name].shape) if b is None else b for",
        "found = {name: np.full(arrays[name].shape, np.inf) for",
        Probe("mdh_probes.judged"),
    ),
]
