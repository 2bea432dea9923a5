"""What ONNX's operators may be given: nothing that is not known is ignored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx_files import attribute, function, graph, model, node

from polyloom import PolyloomError
from polyloom.frontends.graph.lowering import lower
from polyloom.frontends.graph.model import Node
from polyloom.frontends.onnx.operators import fault, operators
from polyloom.frontends.onnx.read import graph_of_bytes
from polyloom.frontends.onnx.table import DOMAINS, find_operation
from polyloom.frontends.onnx.tensors import Place

ROWS = [
    (domain, name, version, signature)
    for (domain, name), versions in operators().versions.items()
    for version, signature in versions.items()
    if not signature.withdrawn
]
VALUES = {"i": 1, "f": 1.0, "s": "a", "t": np.ones(1), "is": (1,), "fs": (1.0,), "ss": ("a",)}


def refusal(data: bytes) -> str:
    """Return the code and the notes with which a model is refused."""
    with pytest.raises(PolyloomError) as caught:
        lower(graph_of_bytes(data, "it", Place(None)), find_operation)
    found = caught.value.diagnostics[0]
    return " ".join((found.code, found.message, *found.notes))


def plain(domain: str, name: str, version: int, signature: Any) -> Node:
    """Make a node that is right as far as the table says."""
    given = {n: VALUES.get(signature.attributes[n]) for n in signature.required}
    known = {n: v if v is not None else object() for n, v in given.items()}
    inputs, outputs = ("x",) * signature.inputs[0], ("y",) * signature.outputs[0]
    return Node("n", name, inputs, outputs, known, domain, version)


def test_the_table_has_every_operation() -> None:
    names = ("Bfloat16", "CastNarrow", "QuantizeNarrow")  # which reading a model adds
    ours = {("polyloom", name) for name in names}
    assert {(d, n) for d, names in DOMAINS.items() for n in names} == {*operators().versions} | ours


def test_the_table_is_that_of_onnx() -> None:
    defs = pytest.importorskip("onnx.defs")
    schemas = {(s.domain, s.name, s.since_version): s for s in defs.get_all_schemas_with_history()}
    both = [(*row, schemas[row[:3]]) for row in ROWS if row[:3] in schemas]
    assert len(both) > 400
    for _, name, _, signature, schema in both:
        assert {*schema.attributes} == {*signature.attributes}, name
        assert {a.name for a in schema.attributes.values() if a.required} == signature.required
        assert (schema.min_input, schema.min_output) == (signature.inputs[0], signature.outputs[0])
        assert min(schema.max_input, 2**31 - 1) == (signature.inputs[1] or 2**31 - 1) or schema.max_input == 0


def test_what_is_known_is_no_fault() -> None:
    assert [row[:3] for row in ROWS if fault(plain(*row)) is not None] == []


def test_an_attribute_of_any_operator_that_is_not_known_is_named() -> None:
    for row in ROWS:
        right = plain(*row)
        odd = replace(right, attributes={**right.attributes, "odd": 1})
        assert "`odd`" in (fault(odd) or ""), row


def test_an_opset_of_later_years_is_named() -> None:
    for domain, name, _, signature in ROWS:
        later = operators().newest[domain] + 1
        assert f"opset {later} of {name} is not known" in (fault(plain(domain, name, later, signature)) or "")


@pytest.mark.parametrize(
    ("op", "version", "inputs", "attributes", "said"),
    [
        ("Softmax", 13, 1, {"axis": 1.0}, "attribute `axis` is not an integer"),
        ("Clip", 11, 1, {"min": 0.0}, "attribute `min` is not known of Clip of opset 11"),
        ("Cast", 13, 1, {}, "attribute `to` is missing"),
        ("Gelu", 19, 1, {}, "Gelu is no operator of opset 19: it came with opset 20"),
        ("Upsample", 10, 2, {}, "Upsample is no operator of opset 10: it ended with opset 10"),
        ("Relu", 13, 2, {}, "2 inputs, at most 1 are known"),
        ("Add", 13, 1, {}, "1 inputs, at least 2 are needed"),
        ("Relu", 0, 1, {}, "the file does not say of which opset"),
    ],
)
def test_what_does_not_fit(op: str, version: int, inputs: int, attributes: Any, said: str) -> None:
    assert said in (fault(Node("n", op, ("x",) * inputs, ("y",), attributes, "", version)) or "")


def test_files_with_what_is_not_known() -> None:
    relu = graph([node("Relu", "x", "y")], {"x": (2,)}, ["y"])
    assert "opset 99 of Relu" in refusal(model(relu, opset=99))
    odd = graph([node("Gemm", "x x", "y", transpose_b=1)], {"x": (2, 2)}, ["y"])
    assert "`transpose_b` is not known of Gemm" in refusal(model(odd))
    other = graph([node("Adam", "x x x x x x", "y", domain="ai.onnx.preview.training")], {"x": ()}, ["y"])
    assert "of which opset of the domain `ai.onnx.preview.training`" in refusal(model(other))


def test_a_call_with_what_its_function_does_not_know() -> None:
    body = [node("Relu", "a", "b")]
    for call, said in (
        (node("F", "x", "y", domain="own", odd=1), "`odd` is not known of this function"),
        (node("F", "x x", "y", domain="own"), "2 inputs, at most 1 are known"),
        (node("F", "x", "y z", domain="own"), "2 outputs, at most 1 are known"),
    ):
        whole = graph([call], {"x": (2,)}, ["y"])
        assert said in refusal(model(whole, functions=[function("F", "a", "b", body)]))


def test_an_attribute_twice() -> None:
    twice = node("Softmax", "x", "y", axis=0)
    twice.attribute.append(attribute("axis", 1))
    assert "two attributes `axis`" in refusal(model(graph([twice], {"x": (2, 2)}, ["y"])))
