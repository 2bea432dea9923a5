"""Which GPU is compiled for: the one at hand, or one of an architecture that is named."""

from __future__ import annotations

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.cuda.architectures import DEFAULT, architectures
from polyloom.mdh.device.devices import DeviceModel


def target_device(wanted: str | None) -> DeviceModel:
    """Return the GPU that a user compiles for: ``cuda:sm_90`` or ``sm_90``; None: that of ``DEFAULT``.

    Errors: ``cuda-architecture``.
    """
    known = architectures()
    name = (wanted or DEFAULT).strip().lower().removeprefix("cuda").removeprefix(":") or DEFAULT
    if name in known:
        return known[name]
    notes = [f"{architecture}: {model.name}" for architecture, model in known.items()]
    helps = [f"`--device {next(iter(known))}`; newer GPUs take its code, too"]
    message = f"there is no architecture `{name}` among those that are known"
    raise PolyloomError(error("cuda-architecture", message, notes=notes, helps=helps))
