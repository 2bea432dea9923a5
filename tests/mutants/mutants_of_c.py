"""Mutants of the C front end."""

from __future__ import annotations

from mutant import Mutant, Probe

MUTANTS = [
    Mutant(
        "frontends/c/walk/data_loops",
        "needed = unset(steps, [result.locals[-1] for result in results], found.spoken)",
        "needed = set[Local]()",
        Probe("c_probes.evaluated", ("steps_of_data",)),
    ),
    Mutant(
        "frontends/c/walk/data_loops",
        "left = [iterates] if isinstance(node, c_ast.Continue) else [goes_on, iterates]",
        "left = [iterates]",
        Probe("c_probes.evaluated", ("steps_of_data",)),
    ),
    Mutant(
        "frontends/c/walk/data_loops",
        "return (Assign(local, new), *([] if element is None else [_set(element.stored)]))",
        "return (Assign(local, new),)",
        Probe("c_probes.evaluated", ("an_element_of_steps",)),
    ),
    Mutant(
        "frontends/c/walk/loops",
        "return (domain if domain.is_disjoint(late) else domain.subtract(late)).coalesce()",
        "return domain.coalesce()",
        Probe("c_probes.evaluated", ("ends_early",)),
    ),
    Mutant(
        "frontends/c/walk/loops",
        'sign = ">" if descending else "<"',
        'sign = "<"',
        Probe("c_probes.evaluated", ("leaving_down",)),
    ),
    Mutant(
        "frontends/c/walk/loops",
        "last = points.dim_min(0) if step > 0 else points.dim_max(0)",
        "last = points.dim_max(0)",
        Probe("c_probes.evaluated", ("after_the_loop",)),
    ),
    Mutant(
        "frontends/c/walk/loops",
        "passed = here.sub(first) if step > 0 else first.sub(here)",
        "passed = here.sub(first)",
        Probe("c_probes.evaluated", ("down_by_three",)),
    ),
    Mutant(
        "frontends/c/walk/loops",
        "passed.mod_val(isl_integer(abs(step))).eq_set(constant_affine(0))",
        "passed.ge_set(constant_affine(0))",
        Probe("c_probes.evaluated", ("down_by_three",)),
    ),
    Mutant(
        "frontends/c/walk/loops",
        "function = begin.add(passed.scale_val(isl_integer(by)))",
        "function = begin.add(passed)",
        Probe("c_probes.evaluated", ("both_move",)),
    ),
    Mutant(
        "frontends/c/walk/loops",
        "tested = first.add(constant_affine(head.tested))",
        "tested = first",
        Probe("c_probes.evaluated", ("counting_down",)),
    ),
    Mutant(
        "frontends/c/walk/loops",
        "domain = _moved(header.domain, header.iterator, by)",
        "domain = header.domain",
        Probe("c_probes.evaluated", ("counting_down_behind_the_test",)),
    ),
    Mutant(
        "frontends/c/integers/affine",
        "return value.mod_val(isl_integer(mask + 1))",
        "return value.mod_val(isl_integer(mask))",
        Probe("c_probes.evaluated", ("shifted_and_masked",)),
    ),
    Mutant(
        "frontends/c/integers/affine",
        "return floor_divided(left, 2**shift) if",
        'return truncated("/", left, 2**shift) if',
        Probe("c_probes.evaluated", ("shifted_and_masked",)),
    ),
    Mutant(
        "frontends/c/integers/affine",
        "quotient = value.tdiv_q(positive)",
        "quotient = value.div(positive).floor()",
        Probe("c_probes.evaluated", ("truncating_subscripts",)),
    ),
    Mutant(
        "frontends/c/integers/affine",
        "return value.tdiv_r(positive)",
        "return value.mod_val(isl_integer(abs(divisor)))",
        Probe("c_probes.evaluated", ("truncating_subscripts",)),
    ),
    Mutant(
        "frontends/c/integers/affine",
        "chosen = where.indicator_function().cond(first.value, second.value)",
        "chosen = first.value",
        Probe("c_probes.evaluated", ("chosen_subscripts",)),
    ),
    Mutant(
        "frontends/c/integers/affine",
        '"<=": lambda a, b: a.le_set(b),',
        '"<=": lambda a, b: a.lt_set(b),',
        Probe("c_probes.evaluated", ("last_of_each_row",)),
    ),
    Mutant(
        "frontends/c/scope/types",
        "if _RANK[a] != _RANK[b]:",
        "if False:",
        Probe("c_probes.evaluated", ("wider",)),
    ),
    Mutant(
        "frontends/c/scope/types",
        "return a if is_unsigned(a) else b",
        "return b if is_unsigned(a) else a",
        Probe("c_probes.evaluated", ("unsigned_beside_signed",)),
    ),
    Mutant(
        "frontends/c/scope/types",
        "(not element.is_float and _RANK[element] < 2)",
        "False",
        Probe("c_probes.evaluated", ("promoted",)),
    ),
    Mutant(
        "frontends/c/scope/types",
        '1 if "short" in kinds else 3 if',
        '2 if "short" in kinds else 3 if',
        Probe("c_probes.evaluated", ("narrow",)),
    ),
    Mutant(
        "frontends/c/scope/conversions",
        "return (value - low) % (high - low + 1) + low",
        "return max(low, min(high, value))",
        Probe("c_probes.evaluated", ("wrapped_constants",)),
    ),
    Mutant(
        "frontends/c/scope/conversions",
        "case Compare(op=op, left=left, right=right) if op.is_equality or not left.type.is_float:",
        "case Compare(op=op, left=left, right=right):",
        Probe("c_probes.evaluated", ("not_a_number",)),
        fast=True,
    ),
    Mutant(
        "frontends/c/scope/conversions",
        "return Convert(element, expression)",
        "return expression",
        Probe("c_probes.evaluated", ("narrow",)),
    ),
    Mutant(
        "frontends/c/walk/conditions",
        "return not single and (calls or _changed(node, state))",
        "return False",
        Probe("c_probes.evaluated", ("condition_that_changes",)),
        fast=True,
    ),
    Mutant(
        "frontends/c/walk/conditions",
        "where = first.intersect(second)",
        "where = first",
        Probe("c_probes.evaluated", ("within_a_range",)),
    ),
    Mutant(
        "frontends/c/walk/branches",
        "test = no(kept if kept is not None else truth(node.cond, state))",
        "test = no(condition)",
        Probe("c_probes.evaluated", ("otherwise",)),
    ),
    Mutant(
        "frontends/c/walk/control",
        "one.domain = one.domain.subtract(gone).coalesce()",
        "one.domain = one.domain.coalesce()",
        Probe("c_probes.evaluated", ("leaving",)),
    ),
    Mutant(
        "frontends/c/walk/control",
        "with state.within(left.complement() if left is not None else everywhere()):",
        "with state.within(everywhere()):",
        Probe("c_probes.evaluated", ("leaving",)),
    ),
    Mutant(
        "frontends/c/walk/control",
        "if header.last is not None and stops.breaks is None:",
        "if header.last is not None:",
        Probe("c_probes.refused", ("value_after_a_break",)),
    ),
    Mutant(
        "frontends/c/integers/sizes",
        "return extent.affine.mul(inner)",
        "return inner",
        Probe("c_probes.evaluated", ("sizes",)),
    ),
    Mutant(
        "frontends/c/integers/sizes",
        "return constant_affine(POINTER) if argument or",
        "return constant_affine(POINTER) if",
        Probe("c_probes.evaluated", ("size_of_an_argument",)),
    ),
    Mutant(
        "frontends/c/integers/enumerations",
        "following = following + 1 if",
        "following = following + 0 if",
        Probe("c_probes.evaluated", ("enumerated",)),
    ),
    Mutant(
        "frontends/c/syntax/macros",
        "guarded = dict.fromkeys([*defines, *_GUARDED.findall(source.text)])",
        "guarded = dict.fromkeys(defines)",
        Probe("c_probes.macros_are_known"),
    ),
]
