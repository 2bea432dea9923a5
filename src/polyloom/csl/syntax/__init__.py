"""CSL text to a syntax tree in which every node knows its place."""

from polyloom.csl.syntax.parse import parse, parse_expression

__all__ = ["parse", "parse_expression"]
