"""Compare what `show --as scop` finds in pet's own tests with the results that pet's authors expect.

    python benchmarks/pet_parity.py CHECKOUT/tests [NAME...]

CHECKOUT is one of pet (github.com/ppcg-gpu/pet, upstream commit 6ffb68c); PyYAML must be installed. Compared
are domain, reads, writes, must-writes and the order of all instances, as sets, where pet's context holds.
Left out are pet's statements for a loop's own variable and for the end of a variable's life; statements are
matched by what they do. Prints a line for each test that differs, and the table.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import islpy as isl

from polyloom.diagnostics import PolyloomError
from polyloom.sources import Reading, load_parts

DIM = isl.dim_type

TIERS = {
    "A": {
        "affine": "QR array boolean cast const cuervo decl empty empty2 empty3 empty_domain enum "
        "expr float float2 iterator_declaration label label2 loop loop2 loop3 loop4 loop5 "
        "loop8 loop_body loop_body2 macro matmul scalar scalar_inc static",
        "step": "dec dec2 dec3 dec4 inc inc2 inc3 inc4",
        "conditions": "if1 if2 implicit_condition shortcut1 shortcut2",
        "minimum, maximum": "max min min2 pencil_max pencil_min",
        "quasi-affine": "ceild div_mod floord floord2 generic_condition generic_condition2 mod mod2 omega "
        "quasi_affine",
        "piecewise": "piecewise piecewise2 rotate",
    },
    "B": {
        "assumptions": "assume assume2 assume3 assume4 assume5",
        "break, continue": "break break2 break5 continue",
        "arguments": "arg write write2",
        "called bodies": "call1 call10 call2 call3 call4 call5 call6 call7 call8 call9",
        "context": "invalid loop6",
        "data": "conditional_assignment conditional_assignment2 conditional_assignment3 "
        "data_dependent data_dependent2 dynamic_bound dynamic_condition filter filter2 "
        "filter3 loop7 ternary wdp",
        "substitution": "forward_substitution1 forward_substitution2 forward_substitution3 "
        "forward_substitution4 forward_substitution5 propagate",
        "independent": "independent1 independent2 independent3 independent4",
        "inlining": "inline1 inline10 inline11 inline12 inline13 inline14 inline2 inline3 inline4 "
        "inline5 inline6 inline7 inline8 inline9",
        "kill": "kill kill2 no_kill1 no_kill2 no_kill3 no_kill4",
        "locals": "decl2 decl3 decl4 decl5 decl6 decl7 decl8",
        "structures": "call_struct struct1 struct10 struct11 struct12 struct13 struct14 struct2 struct3 "
        "struct4 struct5 struct6 struct7 struct8 struct9",
    },
}
"""A: what md_poly needs; B: the rest of static control. pet's other tests have no static control."""

KINDS = ("reads", "writes", "must_writes")


@dataclass
class Model:
    """A part by statement: ``domain``, and for each kind of access a relation."""

    domains: dict[str, isl.Set]
    accesses: dict[str, dict[str, isl.UnionMap]]
    schedule: isl.UnionMap
    context: isl.Set


def expected(path: Path) -> Model:
    """Read one of pet's results."""
    import yaml

    with path.open() as file:
        document = yaml.load(file, Loader=yaml.BaseLoader)  # pet writes a bare `=`, a tag of YAML 1.1
    model = Model({}, {}, isl.Schedule(document["schedule"]).get_map(), isl.Set(document["context"]))
    variables: set[str] = set()
    statements: list[tuple[isl.Set, dict[str, Any]]] = []
    for statement in document.get("statements") or []:
        domain = isl.Set(statement["domain"])
        domain = domain.unwrap().domain() if domain.is_wrapping() else domain
        statements.append((domain, statement))
        variables |= {str(name).rstrip("'") for name in domain.get_var_names(DIM.set) if name}
    for domain, statement in statements:
        body, arguments = statement["body"], statement.get("arguments") or []
        if body["type"] == "expression" and body["expr"].get("operation") == "kill":
            continue
        found = {kind: relation_of(body, arguments, kind, domain) for kind in KINDS}
        if not domain.is_empty() and not only_counts(found["writes"], variables):
            model.domains[domain.get_tuple_name()] = domain
            model.accesses[domain.get_tuple_name()] = found
    return model


def relation_of(body: Any, arguments: Any, kind: str, domain: isl.Set) -> isl.UnionMap:
    """Return the accesses of one kind in a statement's tree; one with arguments surely writes nothing."""
    result = isl.UnionMap("{ }")
    if kind == "must_writes" and (arguments or body["type"] != "expression"):
        return result
    for expression in accesses_in([body, *(arguments if kind == "reads" else ())]):
        relation = access(expression, kind)
        result = result if relation is None else result.union(relation)
    return result.intersect_domain(isl.UnionSet.from_set(domain)).coalesce()


def accesses_in(node: Any) -> list[dict[str, Any]]:
    """Return the access expressions below a node."""
    if isinstance(node, list):
        return [found for part in node for found in accesses_in(part)]
    if not isinstance(node, dict):
        return []
    inner = [found for part in node.values() for found in accesses_in(part)]
    return [node, *inner] if node.get("type") == "access" else inner


def access(expression: dict[str, Any], kind: str) -> isl.UnionMap | None:
    """Return the relation of an access, if it is of a kind; what depends on data is any element."""
    index = isl.MultiPwAff(expression["index"])
    wanted = "read" if kind == "reads" else "write"
    if not index.has_tuple_id(DIM.out) or expression.get(wanted) != "1":
        return None
    if kind == "must_writes" and expression.get("arguments"):
        return None
    key = {"reads": "may_read", "writes": "may_write", "must_writes": "must_write"}[kind]
    if key in expression:
        relation = isl.UnionMap(expression[key])
    else:
        whole = isl.Map.from_multi_pw_aff(index)
        missing = int(expression.get("depth", 0)) - whole.dim(DIM.out)
        relation = isl.UnionMap.from_map(extended(whole, missing))
    return without_arguments(relation) if expression.get("arguments") else relation


def extended(relation: isl.Map, missing: int) -> isl.Map:
    """Return a relation to all elements of what it relates to, ``missing`` dimensions inside."""
    if missing <= 0:
        return relation
    name = relation.get_tuple_name(DIM.out)
    if relation.range().is_wrapping():
        inner = extended(relation.range_factor_range(), missing)
        relation = relation.range_factor_domain().range_product(inner)
    else:
        relation = relation.add_dims(DIM.out, missing)
    return relation.set_tuple_name(DIM.out, name)


def without_arguments(relation: isl.UnionMap) -> isl.UnionMap:
    """Return ``S[i] -> A[o]`` of ``[S[i] -> [v]] -> A[o]``."""
    result = isl.UnionMap("{ }")
    for part in maps_of(relation):
        if part.domain().is_wrapping():
            part = part.apply_domain(part.domain().unwrap().domain_map())
        result = result.union(isl.UnionMap.from_map(part))
    return result


def maps_of(relation: isl.UnionMap) -> list[isl.Map]:
    found: list[isl.Map] = []
    relation.foreach_map(found.append)
    return found


def only_counts(writes: isl.UnionMap, variables: set[str]) -> bool:
    """Whether a statement only sets the variable of a loop."""
    targets = [part.range() for part in maps_of(writes)]
    return bool(targets) and all(t.dim(DIM.set) == 0 and t.get_tuple_name() in variables for t in targets)


def found_in(path: Path) -> Model:
    """Return what Polyloom finds. Errors: ``PolyloomError``."""
    from polyloom.frontends.c.document import document

    (part,) = load_parts(path, Reading())
    shown = document(part)
    model = Model({}, {}, isl.UnionMap(shown["schedule"]), isl.Set("{ : }"))
    for statement in part.statements:
        if statement.domain.is_empty():
            continue
        here = isl.UnionSet.from_set(statement.domain)
        model.domains[statement.name] = statement.domain
        model.accesses[statement.name] = {k: isl.UnionMap(shown[k]).intersect_domain(here) for k in KINDS}
    return model


def differences(theirs: Model, ours: Model) -> list[str]:
    """Return what differs; an empty list: nothing."""
    for model in (theirs, ours):
        model.domains = {n: d for n, d in model.domains.items() if not outside(d, theirs.context)}
    if len(theirs.domains) != len(ours.domains):
        return [f"{len(ours.domains)} statements, expected {len(theirs.domains)}"]
    names: dict[str, str] = {}
    for name in ours.domains:
        match = next(
            (t for t in theirs.domains if t not in names.values() and same_form(theirs, t, ours, name)), None
        )
        if match is None:
            return [f"{name} is like none that is expected"]
        names[name] = match
    if not order(theirs, {}, theirs.context).is_equal(order(ours, names, theirs.context)):
        return ["the order of the instances"]
    return []


def outside(domain: isl.Set, context: isl.Set) -> bool:
    """Whether a statement has no instance where pet's context holds."""
    return bool(domain.intersect_params(context).is_empty()) and not context.is_empty()


def same_form(theirs: Model, their: str, ours: Model, our: str) -> bool:
    """Whether two statements have the same instances and accesses, where pet's context holds."""
    domain = ours.domains[our].set_tuple_name(their)
    if domain.dim(DIM.set) != theirs.domains[their].dim(DIM.set):
        return False
    expected_ = theirs.domains[their].intersect_params(theirs.context)
    if not expected_.is_equal(domain.intersect_params(theirs.context)):
        return False
    return all(
        theirs.accesses[their][kind]
        .intersect_params(theirs.context)
        .is_equal(renamed(ours.accesses[our][kind], {our: their}).intersect_params(theirs.context))
        for kind in KINDS
    )


def renamed(relation: isl.UnionMap, names: dict[str, str]) -> isl.UnionMap:
    result = isl.UnionMap("{ }")
    for part in maps_of(relation):
        name = part.get_tuple_name(DIM.in_)
        result = result.union(isl.UnionMap.from_map(part.set_tuple_name(DIM.in_, names.get(name, name))))
    return result


def order(model: Model, names: dict[str, str], context: isl.Set) -> isl.UnionMap:
    """Return the relation "runs before" between instances."""
    instances = isl.UnionSet("{ }")
    for name, domain in model.domains.items():
        instances = instances.union(isl.UnionSet.from_set(domain.set_tuple_name(names.get(name, name))))
    schedule = renamed(model.schedule, names).intersect_domain(instances).intersect_params(context)
    return schedule.lex_lt_union_map(schedule)


def compare(folder: Path, name: str) -> str:
    """Return ``same``, ``refused: ...`` or ``differs: ...``."""
    try:
        ours = found_in(folder / f"{name}.c")
    except PolyloomError as fault:
        return f"refused: {fault.diagnostics[0].message}"
    found = differences(expected(folder / f"{name}.scop"), ours)
    return f"differs: {found[0]}" if found else "same"


def main(arguments: list[str]) -> int:
    """Print the table; return 0 where all of tier A and 80 of tier B are the same."""
    if not arguments or not (Path(arguments[0]) / "matmul.scop").exists():
        print(__doc__)
        return 2
    folder, wanted = Path(arguments[0]), set(arguments[1:])
    counts: Counter[tuple[str, str]] = Counter()
    for tier, categories in TIERS.items():
        for category, names in categories.items():
            for name in names.split():
                if wanted and name not in wanted:
                    continue
                result = compare(folder, name)
                counts.update([(tier, "all"), (f"{tier}, {category}", "all")])
                if result == "same":
                    counts.update([(tier, "same"), (f"{tier}, {category}", "same")])
                else:
                    print(f"{name}: {result}")
    for what in sorted({row for row, _ in counts}):
        print(f"{what:24s} {counts[what, 'same']:3d} of {counts[what, 'all']:3d}")
    return (
        0
        if counts["A", "same"] == counts["A", "all"] and counts["B", "same"] >= min(80, counts["B", "all"])
        else 1
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
