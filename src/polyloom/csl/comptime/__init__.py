"""CSL programs, carried out as far as they are known at compile time: modules, values, layouts.

What who lowers a function's body needs: ``evaluate(node, scope)`` gives the value of an expression or
raises ``NotComptime`` as soon as it needs what is known at run time (a module's ``var``, a name bound to
``Runtime``, a builtin that acts); ``place(node, scope)`` gives the address of what it names, also of a
module's ``var``; ``execute(statement, scope)`` carries a statement out on ``comptime`` variables; ``Scope``
holds local names.
"""

from polyloom.csl.comptime.builtins import DIRECTIVES, DSD_OPERATIONS, LAYOUT, RUNTIME
from polyloom.csl.comptime.colors import ColorConfig, Filter, Position, Switches, color_config
from polyloom.csl.comptime.conversion import bitcast, cast, convert, points_as
from polyloom.csl.comptime.descriptors import (
    Access,
    affine,
    fields_of,
    strides_of_steps,
    tensor_access,
    whole_numbers,
)
from polyloom.csl.comptime.evaluate import evaluate, named, resolve_type, truth
from polyloom.csl.comptime.execute import Outcome, call, execute, parameter_type, sequence
from polyloom.csl.comptime.faults import NotComptime, fault, not_comptime
from polyloom.csl.comptime.layout import Export, Layout, TileProgram, run_layout
from polyloom.csl.comptime.modules import (
    Directive,
    Loader,
    Module,
    Program,
    SourceFile,
    deep_recursion,
    elaborate,
)
from polyloom.csl.comptime.operators import binary, operands, peer, unary
from polyloom.csl.comptime.places import load, place, type_at, whole_number
from polyloom.csl.comptime.scope import Binding, Runtime, Scope

__all__ = [
    "DIRECTIVES",
    "DSD_OPERATIONS",
    "LAYOUT",
    "RUNTIME",
    "Access",
    "Binding",
    "ColorConfig",
    "Directive",
    "Export",
    "Filter",
    "Layout",
    "Loader",
    "Module",
    "NotComptime",
    "Outcome",
    "Position",
    "Program",
    "Runtime",
    "Scope",
    "SourceFile",
    "Switches",
    "TileProgram",
    "affine",
    "binary",
    "bitcast",
    "call",
    "cast",
    "color_config",
    "convert",
    "deep_recursion",
    "elaborate",
    "evaluate",
    "execute",
    "fault",
    "fields_of",
    "load",
    "named",
    "not_comptime",
    "operands",
    "parameter_type",
    "peer",
    "place",
    "points_as",
    "resolve_type",
    "run_layout",
    "sequence",
    "strides_of_steps",
    "tensor_access",
    "truth",
    "type_at",
    "unary",
    "whole_number",
    "whole_numbers",
]
