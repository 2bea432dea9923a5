"""How often random tests try: in `make test` a few times and always the same, in CI more often and afresh."""

from __future__ import annotations

from hypothesis import settings

FEW = 10
"""Cases of a property in the profile `quick`."""


def make_profiles() -> None:
    """Make the profiles, before test modules are imported: `quick`, and for `--hypothesis-profile` `full`."""
    settings.register_profile("full", deadline=None, derandomize=False, database=None, print_blob=True)
    settings.register_profile("quick", deadline=None, derandomize=True, max_examples=FEW)
    settings.load_profile("quick")


def tried(times: int) -> settings:
    """Return the settings of a property that is tried so many times, and at most `FEW` in `quick`."""
    return settings(max_examples=min(times, FEW) if settings().derandomize else times)
