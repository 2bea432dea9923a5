"""``polyloom devices``: the OpenCL devices that there are."""

from __future__ import annotations

import json

import click

from polyloom.cli.options import json_option


@click.command()
@click.option("--debug", is_flag=True, expose_value=False, hidden=True)
@json_option
def command(as_json: bool) -> None:
    """List the OpenCL devices: the number, name or kind is what `--device` takes."""
    from polyloom.mdh.device.devices import find_devices, no_device
    from polyloom.report.devices_view import print_devices

    found = find_devices()
    if as_json:
        click.echo(json.dumps([model.json() for model in found], indent=1))
    elif found:
        print_devices(found)
    if not found:
        from polyloom.diagnostics import PolyloomError

        raise PolyloomError(no_device())
