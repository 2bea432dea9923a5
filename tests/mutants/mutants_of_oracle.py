"""Mutants of the references: each must keep to what the source says, and to nothing else."""

from __future__ import annotations

from mutant import Mutant, Probe

MUTANTS = [
    Mutant(
        "oracle/c_reference",
        "found = self._written(arrays, program.run({**arrays, **scalars}))",
        "found = {n: a.copy() for n, a in arrays.items()}",
        Probe("oracle_probes.references", ("recurrence", "compiled")),
    ),
    Mutant(
        "oracle/c_reference",
        "run_in_order(self.scop, parameters, found)",
        "pass",
        Probe("oracle_probes.references", ("recurrence", "interpreted")),
    ),
    Mutant(
        "oracle/c_reference",
        'found = {name: np.array(array, order="C") for name, array in arrays.items()}',
        "found = dict(arrays)",
        Probe("oracle_probes.references", ("recurrence", "interpreted")),
    ),
    Mutant(
        "oracle/c_reference",
        "if n in targets or not _same(before[n], after[n])",
        "if not targets",
        Probe("oracle_probes.references", ("recurrence", "interpreted")),
    ),
    Mutant(
        "oracle/interpreter",
        "first = np.lexsort(whole.T[::-1])",
        "first = np.lexsort(whole.T)",
        Probe("oracle_probes.references", ("in_turn", "interpreted")),
    ),
    Mutant(
        "oracle/interpreter",
        "if self._condition is None or bool(self._condition(instance)):",
        "if True:",
        Probe("oracle_probes.references", ("perhaps_the_last", "interpreted")),
    ),
    Mutant(
        "oracle/interpreter",
        "not all(0 <= i < n for i, n in",
        "not all(i < n for i, n in",
        Probe("oracle_probes.outside_before"),
    ),
    Mutant("oracle/compiled_c", "if status == FAULT:", "if False:", Probe("oracle_probes.outside")),
    Mutant(
        "sources/front_end",
        "return LoadedHost(found.program, scop, (*scop.remarks, *found.remarks), reference)",
        "return LoadedHost(found.program, scop, (*scop.remarks, *found.remarks), None)",
        Probe("oracle_probes.check_fails", ("no flow",)),
    ),
]
