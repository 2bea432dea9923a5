"""The intermediate representation at which every front end stops and every back end starts."""

from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.evaluation.random_inputs import random_inputs, terms_per_element
from polyloom.ir.host import Buffer, Index, View
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine
from polyloom.ir.rounding.programs import error_bound
from polyloom.ir.statements import Statement
from polyloom.ir.text.programs import print_program
from polyloom.ir.types import ElementType
from polyloom.ir.verification.programs import InvalidProgram, verify

__all__ = [
    "Buffer",
    "Combine",
    "ElementType",
    "Index",
    "InvalidProgram",
    "Program",
    "Statement",
    "View",
    "error_bound",
    "evaluate",
    "print_program",
    "random_inputs",
    "terms_per_element",
    "verify",
]
