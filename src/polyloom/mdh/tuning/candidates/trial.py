"""What is tried, and what a device must offer for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyloom.ir.host import HostProgram, MdHom
from polyloom.mdh.device.devices import DeviceModel

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Run:
    """A candidate that was built. Both return the seconds of one run, above zero.

    ``once``: runs it once, for its results; ``again``: as often as its clock needs.
    """

    once: Callable[[], float]
    again: Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a child needs: one md_hom as a program without parameters, the device, and an emitter.

    ``emitter``: ``module:function``, called with the md_hom, the program, the device and a schedule's text;
    it returns what the device builds. ``folder``: where the reference results lie. ``jobs``: how many
    candidates are built at a time; None: as many as the process may run threads.
    """

    program: HostProgram
    device: DeviceModel
    emitter: str
    folder: str
    seed: int = 0
    jobs: int | None = None

    @property
    def hom(self) -> MdHom:
        """The md_hom."""
        (node,) = self.program.body
        assert isinstance(node, MdHom)
        return node

    @property
    def outputs(self) -> tuple[str, ...]:
        """The buffers that the md_hom writes."""
        return tuple(dict.fromkeys(view.buffer for view in self.hom.outputs))

    def emitted(self, text: str) -> Any:
        """Return what the emitter makes of a schedule."""
        module, _, name = self.emitter.partition(":")
        return getattr(import_module(module), name)(self.hom, self.program, self.device, text)


class Candidates(Protocol):
    """The candidates of one trial on one device, all on the same arrays."""

    most_kept: int
    """How many built candidates a child keeps, so that those that come again are not built again."""

    def built(self, text: str) -> Run:
        """Build a schedule's kernels. Errors: those of the emitter and of the device."""

    def built_ahead(self, texts: Sequence[str]) -> Mapping[str, Run]:
        """Build several at a time where that is faster; those that cannot be built are left out."""

    def reset(self) -> None:
        """Give the outputs the values that the checker starts from."""

    def results(self) -> dict[str, NDArray]:
        """Return what the outputs hold."""


def as_given(arrays: Mapping[str, NDArray], names: Sequence[str]) -> dict[str, NDArray]:
    """Return copies of some arrays."""
    return {name: np.array(arrays[name], order="C") for name in names}
