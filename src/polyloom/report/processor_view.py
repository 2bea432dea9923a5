"""How a program runs on the processor, for a person: its schedules, then its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from polyloom.mdh.schedule.schedules import Memory, Schedule
from polyloom.mdh.tree.nodes import Function
from polyloom.mdh.tree.text import function_text
from polyloom.mdh.tuning.choose import Choice


def text(
    tree: Function,
    device: str,
    parameters: Mapping[str, int],
    choices: Mapping[str, Choice[Schedule]],
    sweeps: Sequence[str] = (),
) -> str:
    """Return a line for each md_hom, one for those that are fused or not and why, and the tree."""
    sizes = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    head = f"{tree.name} on {device}{f', {sizes}' if sizes else ''}"
    chosen = [
        f"  {name}: {choice.origin.value}; {schedule_text(choice.schedule)}"
        for name, choice in choices.items()
    ]
    return "\n".join([head, *chosen, *(f"  {text}" for text in sweeps), "", function_text(tree)])


def schedule_text(schedule: Schedule) -> str:
    """Return what a schedule decides: ``threads take 64 x all, registers 6 x 2, vectors of 16 along 1``."""
    return ", ".join(_decisions(schedule)) or "no tiles"


def _decisions(schedule: Schedule) -> Iterator[str]:
    if any(schedule.group):
        yield f"threads take {_sizes(schedule.group)}"
    if any(schedule.local):
        yield f"caches {_sizes(schedule.local)}"
    if any(size > 1 for size in schedule.private):
        yield f"registers {_sizes(schedule.private)}"
    if schedule.vector is not None:
        yield f"vectors of {schedule.width} along dimension {schedule.vector}"
    copied = [str(k) for k, caching in enumerate(schedule.inputs) if caching.memory is Memory.LOCAL]
    if copied:
        yield f"copies of input {' and '.join(copied)}"


def _sizes(sizes: tuple[int, ...]) -> str:
    return " x ".join(str(size) if size else "all" for size in sizes)
