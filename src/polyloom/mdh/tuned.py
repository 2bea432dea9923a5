"""An emitter that asks the database: tuned schedules where there are any, else the cost model's."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.mdh.adapt import seeded_space
from polyloom.mdh.choose import Choice, choose, tuning_results
from polyloom.mdh.devices import DeviceModel
from polyloom.mdh.emit import emit_md_hom, has_tiles
from polyloom.mdh.emit_nest import emit_nest
from polyloom.mdh.kernel import Launch
from polyloom.mdh.schedule import Schedule
from polyloom.mdh.subjects import tune_targets


class TunedEmitter:
    """Makes the kernels of a node.

    ``path``: the database; None: the user's own. ``choices``: what was chosen for each md_hom, by its name.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.choices: dict[str, Choice[Schedule]] = {}
        self._program: HostProgram | None = None
        self._targets: dict[int, MdHom] = {}

    def __call__(self, node: MdHom | Nest, program: HostProgram, device: DeviceModel) -> Launch:
        """Return the kernels of a node of ``program``.

        Errors: ``database-...`` where ``path`` is no database.
        """
        if isinstance(node, Nest):
            return emit_nest(node, program, device)
        if not has_tiles(node):
            return emit_md_hom(node, program, device, None)
        space = seeded_space(self._launched(node, program), program, device)
        with tuning_results(self._path) or nullcontext() as database:
            choice = choose(node, program.buffers, device, space, database)
        self.choices[node.name] = choice
        return emit_md_hom(node, program, device, choice.schedule)

    def _launched(self, node: MdHom, program: HostProgram) -> MdHom:
        """Return an md_hom with the sizes of a middle launch, where host iterators decide them."""
        if self._program is not program:
            self._program = program
            known = () if program.parameters else tune_targets(program)
            self._targets = {id(target.node): target.launched for target in known}
        return self._targets.get(id(node), node)
