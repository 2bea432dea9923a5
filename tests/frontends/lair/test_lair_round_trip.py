"""Printing and parsing are inverse, for trees and for specialized programs."""

from __future__ import annotations

from hypothesis import given

from polyloom.diagnostics import Source
from polyloom.frontends.lair import Module, from_program, lower, print_module
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program, verify
from random_tests import tried
from strategies import MODULES, programs


@tried(150)
@given(MODULES)
def test_printed_trees_parse_to_themselves(module: Module) -> None:
    assert parse(Source("printed", print_module(module))) == module


@tried(100)
@given(programs())
def test_printed_programs_lower_to_themselves(program: Program) -> None:
    verify(program)
    text = from_program(program)
    assert lower(parse(Source("printed", text))) == program, text
