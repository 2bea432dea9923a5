"""The host's side: what ports are fed and give, and the bytes of residents."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.ir.types import ElementType
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.host.transfers import (
    PortOrder,
    decode,
    encode,
    from_wavelet_bits,
    load_image,
    local_elements,
    port_orders,
    wavelet_bits,
)
from polyloom.wafer.mapping.grid import Side
from random_tests import tried

NOTHING = isl.Map("{ PE[x, y] -> x[i] : false }")
NOWHERE = isl.Set("{ PE[x, y] : false }")
SCHEDULES = [
    "{ x[i, j] -> [PE[i, -1] -> index[j]] : 0 <= i < 3 and 0 <= j < 4 }",
    "{ x[i, j] -> [PE[i, -1] -> index[3 - j]] : 0 <= i < 3 and 0 <= j < 4 }",
    "{ x[i, j] -> [PE[0, -1] -> index[j, i]] : 0 <= i < 3 and 0 <= j < 4 }",
    "{ x[i, j] -> [PE[0, -1] -> index[2i + 1, j//2, 5j + 2]] : 0 <= i < 3 and 0 <= j < 4 }",
    "{ x[i, j] -> [PE[p, -1] -> index[i, j]] : 0 <= i < 3 and 0 <= j < 4 and 0 <= p < 2 }",
    "{ x[i, j] -> [PE[j mod 2, -1] -> index[4i + j]] : 0 <= i < 3 and 0 <= j < 4 }",
]


@dataclass(frozen=True)
class Carried:
    """What passes a port; ``block``: with two elements in a wavelet, as ``transfers`` has it."""

    type: ElementType
    sparse: bool
    block: int | None = None


def numbers(shape: tuple[int, ...], element: ElementType, seed: int) -> npt.NDArray[np.generic]:
    values = np.random.default_rng(seed).integers(-3, 4, shape)
    return values.astype(element.dtype)


@pytest.mark.parametrize("text", SCHEDULES)
@pytest.mark.parametrize("sparse", [False, True])
@given(seed=st.integers(0, 99))
@tried(8)
def test_what_is_fed_can_be_collected_again(text: str, sparse: bool, seed: int) -> None:
    schedule, element = isl.Map(text), ElementType.FLOAT16
    tensor = numbers((3, 4), element, seed)
    found = np.full_like(tensor, 99)
    for order in port_orders(schedule, Side.NORTH, 4):
        payload, control = encode(order, tensor, Carried(element, sparse))
        decode(order, payload, control, Carried(element, sparse), found)
    np.testing.assert_array_equal(found, tensor)


@pytest.mark.parametrize("text", SCHEDULES)
def test_elements_come_in_lexicographic_order_of_the_index(text: str) -> None:
    orders = list(port_orders(isl.Map(text), Side.NORTH, 4))
    assert orders
    for order in orders:
        rows = [tuple(row) for row in order.index.tolist()]
        assert rows == sorted(rows)
        point = f"[PE[{order.position}, -1] -> index[{', '.join(map(str, rows[0]))}]]"
        element = f"x[{', '.join(map(str, order.element[0].tolist()))}]"
        assert isl.Map(f"{{ {element} -> {point} }}").is_subset(isl.Map(text))


def test_every_chunk_ends_once_also_when_it_is_empty() -> None:
    schedule = isl.Map(SCHEDULES[3])
    (order,) = port_orders(schedule, Side.NORTH, 4)
    assert order.chunks == (6, 2)
    payload, control = encode(order, np.zeros((3, 4), np.float16), Carried(ElementType.FLOAT16, True))
    assert control.all() and len(payload) == order.chunk_count == 12


def test_negative_zero_is_a_zero_and_nan_is_none() -> None:
    order = PortOrder(
        side=Side.NORTH, position=0, index=np.array([[0], [1]]), element=np.array([[0], [1]]), chunks=()
    )
    sent = Carried(ElementType.FLOAT16, True)
    payload, control = encode(order, np.array([-0.0, np.nan], np.float16), sent)
    assert control.tolist() == [False, True]
    assert payload[0] >> 16 == 1


def test_the_largest_index_of_a_pair() -> None:
    order = PortOrder(
        side=Side.NORTH, position=0, index=np.array([[65535]]), element=np.array([[0]]), chunks=()
    )
    payload, control = encode(order, np.array([-1], np.int16), Carried(ElementType.INT16, True))
    assert payload.tolist() == [0xFFFFFFFF, 0]
    found = np.zeros(1, np.int16)
    decode(order, payload, control, Carried(ElementType.INT16, True), found)
    assert found.tolist() == [-1]


@pytest.mark.parametrize(
    "element", [ElementType.FLOAT16, ElementType.FLOAT32, ElementType.INT16, ElementType.INT32]
)
def test_bits_there_and_back(element: ElementType) -> None:
    values = numbers((50,), element, 1)
    np.testing.assert_array_equal(from_wavelet_bits(wavelet_bits(values, element), element), values)


def test_a_tensor_of_rank_0_at_a_port() -> None:
    (order,) = port_orders(isl.Map("{ x[] -> [PE[2, -1] -> index[0]] }"), Side.NORTH, 4)
    sent = Carried(ElementType.FLOAT32, False)
    payload, control = encode(order, np.array(1.5, np.float32), sent)
    assert payload.view(np.float32).tolist() == [1.5] and not control.any()


def test_the_image_of_a_resident_leaves_out_what_is_no_element() -> None:
    elements = isl.Map("{ PE[x, y] -> W[i] : 0 <= x < 2 and y = 0 and 3x <= i < 3x + 3 and 0 <= i < 5 }")
    offset = isl.MultiAff("[PE_X, PE_Y] -> { [] -> W[3PE_X] }")
    array = LocalArray(
        tensor="W",
        type=ElementType.INT32,
        elements=elements,
        offset=offset,
        extent_before=(3,),
        low=(1,),
        extent=(5,),
    )
    xs, ys = np.array([0, 1]), np.array([0, 0])
    (places,) = local_elements(array, xs, ys)
    np.testing.assert_array_equal(places, [[-1, 0, 1, 2, 3], [2, 3, 4, 5, 6]])
    data, known = load_image(array, np.arange(10, 15, dtype=np.int32), xs, ys)
    values = data.view(np.int32)
    np.testing.assert_array_equal(known, [[False, True, True, True, True], [True, True, True, False, False]])
    assert values[0, 1:].tolist() == [10, 11, 12, 13] and values[1, :3].tolist() == [12, 13, 14]
