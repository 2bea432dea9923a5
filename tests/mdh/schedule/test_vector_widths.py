"""How wide vectors are chosen where a result is narrower than what it is made of."""

from __future__ import annotations

import polyloom

COUNT = """void f(int n, double a[n], int out[1]) {
  int k = 0;
  for (int i = 0; i < n; i++) if (a[i] > 0.5) k++;
  out[0] = k;
}"""


def test_a_count_of_doubles_has_vectors_of_as_many_doubles_as_a_register_holds() -> None:
    function = polyloom.load(COUNT, device="native")
    (node,) = (n for n in function.explain(native={"n": 32000}).json()["md_homs"] if n["schedule"])
    assert 1 < node["schedule"]["width"] <= function.compiled.device.vector_bytes // 8
