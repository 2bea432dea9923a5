"""``polyloom devices``: what programs can run on."""

from __future__ import annotations

import click

from polyloom.cli.messages import print_document
from polyloom.cli.options import json_option


@click.command()
@click.option("--debug", is_flag=True, expose_value=False, hidden=True)
@json_option
def command(as_json: bool) -> None:
    """List what programs run on: `native`, the default, is C by a C compiler; then come CUDA's and OpenCL's.

    The number, name or kind is what `--device` takes; of CUDA `cuda:` and a part of the name.
    """
    from polyloom.mdh.native.device import all_devices, no_device_at_all
    from polyloom.report.devices_view import print_devices

    found = all_devices()
    if as_json:
        print_document([model.json() for model in found])
    elif found:
        print_devices(found)
    if not found:
        from polyloom.diagnostics import PolyloomError

        raise PolyloomError(no_device_at_all())
