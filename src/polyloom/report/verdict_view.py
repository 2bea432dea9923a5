"""What a check found, for a person."""

from __future__ import annotations

from polyloom.ir.verification.comparison import MUCH, Reals, Verdict


def verdict_rows(verdict: Verdict | None) -> list[tuple[str, str]]:
    """Return what a table says of a check, nothing where there was none."""
    if verdict is None:
        return []
    rows = [("check", verdict_text(verdict))]
    if verdict.reals is not None:
        rows.append(("", reals_text(verdict.reals)))
    if not verdict.reading_checked:
        rows.append(("", "the reading of the file was not checked"))
        rows += [("", note) for note in verdict.notes]
    return rows


def verdict_text(verdict: Verdict) -> str:
    """Return what a check found, and how much that says."""
    if not verdict.passed:
        return f"FAILED: not equal to {verdict.by}"
    if verdict.max_error == 0 and not verdict.unknown:
        return f"passed: equal to {verdict.by}{f'; {verdict.says}' if verdict.tight < MUCH else ''}"
    error = f"error at most {verdict.max_error:.2g} of each element's bound"
    return f"passed: {error}, compared with {verdict.by}; {verdict.says}"


def reals_text(reals: Reals) -> str:
    """Return what the check with made-up reals found."""
    scale = f"reals of 1e-{reals.decades:g} to 1e{reals.decades:g} (seed {reals.seed})"
    return f"{scale}: {verdict_text(reals.verdict)}"
