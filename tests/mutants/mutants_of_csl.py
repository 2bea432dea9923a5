"""Mutants of CSL programs that are compiled."""

from __future__ import annotations

from mutant import Mutant, Probe

STRUCTS = Probe("csl_probes.structs_lie_in_words")
C_TYPES = "csl/lowering/emitted/c_types"

MUTANTS = [
    Mutant(C_TYPES, "end += -end % alignment(field.type)", "end += 0", STRUCTS),
    Mutant(C_TYPES, "return end + end % min(alignment(kind), WORD)", "return end", STRUCTS),
    Mutant(C_TYPES, "return end - size_of(field.type)", "return end - alignment(field.type)", STRUCTS),
    Mutant(
        C_TYPES, "return max((alignment(field.type) for field in fields), default=1)", "return 1", STRUCTS
    ),
]
