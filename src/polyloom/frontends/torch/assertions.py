"""What an exported program asserts: checked where it follows from the sizes, else said by a remark.

ge = _operator.ge(sym_size, 3);  aten._assert_scalar(ge, "...")      holds or not: sizes are known here
ok = aten.all(aten.gt(x, 0));    aten._assert_async(ok, "...")       read in a call: a remark
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyloom.diagnostics import PolyloomError, error, remark, visible_name
from polyloom.frontends.graph.context import Table
from polyloom.frontends.graph.values import Value
from polyloom.frontends.torch.call import Call, operation

_STATED = ("aten._assert_tensor_metadata.",)
"""Types of tensors: the archive states them of every tensor, and they are compared with what comes out."""

_CONDITIONS = ("aten._assert_async.", "aten._assert_scalar.")
_RANGES = ("aten.sym_constrain_range.", "aten.sym_constrain_range_for_size.")

CONDITION = "polyloom.asserted"
RANGE = "polyloom.asserted_range"


def is_stated(operation: str) -> bool:
    """Tell whether an operation asserts what is checked of every tensor."""
    return operation.startswith(_STATED)


def asserted(operation: str) -> str:
    """Return an operation of an exported program, with those that assert by names of their own.

    ``torch.compile`` leaves what reads data to the caller, who can raise: there they are no operations.
    """
    kinds = {CONDITION: _CONDITIONS, RANGE: _RANGES}
    return next((kind for kind, names in kinds.items() if operation.startswith(names)), operation)


def _condition(call: Call) -> list[Value]:
    message = call.attribute("assert_msg", "a number is not 0")
    _check(call, "self", bool, f"{message}")
    return []


def _range(call: Call) -> list[Value]:
    least, most = call.attribute("min"), call.attribute("max")

    def holds(found: Any) -> bool:
        return (least is None or found >= least) and (most is None or found <= most)

    _check(call, "size", holds, f"a size is in the range {least} to {most}")
    return []


def _check(call: Call, name: str, holds: Callable[[Any], bool], text: str) -> None:
    """Check what is asserted of an argument, or remark that it is not checked. Errors: ``model-size``."""
    known = call.b.known(call.input(name)) if call.is_tensor(name) else np.asarray(call.attribute(name))
    if known is None:
        call.b.remarks.append(
            remark(
                "model-unchecked",
                f"`{visible_name(call.node.name)}` asserts what is known in a call only: it is not checked",
                notes=[visible_name(text)],
                helps=["check it before the call"],
            )
        )
    elif known.size != 1 or not holds(known.item()):
        message = f"`{visible_name(call.node.name)}` asserts what does not hold for these sizes"
        raise PolyloomError(error("model-size", message, notes=[visible_name(text)]))


OPERATIONS: Table = {CONDITION: operation(_condition), RANGE: operation(_range)}
