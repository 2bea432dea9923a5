"""What is wrong, dangerous or slow in a CSL program, found without running it."""

from polyloom.csl.lint.check import RULES, Rule, check, examine

__all__ = ["RULES", "Rule", "check", "examine"]
