"""The intermediate representation at which every front end stops and every back end starts."""

from polyloom.ir.error_bound import error_bound
from polyloom.ir.evaluate import evaluate
from polyloom.ir.printer import print_program
from polyloom.ir.program import Access, Affine, Combine, Program, Statement, Tensor
from polyloom.ir.random_inputs import random_inputs, terms_per_element
from polyloom.ir.types import ElementType
from polyloom.ir.verify import InvalidProgram, verify

__all__ = [
    "Access",
    "Affine",
    "Combine",
    "ElementType",
    "InvalidProgram",
    "Program",
    "Statement",
    "Tensor",
    "error_bound",
    "evaluate",
    "print_program",
    "random_inputs",
    "terms_per_element",
    "verify",
]
