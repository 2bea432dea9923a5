"""A static control part as a function of its own, inside the user's file, which a C compiler builds.

    void f(int n, double a[n])              void f(int n, double a[n]) { ... }
    {                                       static void polyloom_part(struct polyloom_slot *polyloom_slots)
      double t = start();                   {
    #pragma scop                      ->      int n = *(int *)polyloom_slots[0].memory;
      for (int i = 0; i < n; i++)             double (*a) = polyloom_slots[1].memory;
        a[i] = t;                             double t = *(double *)polyloom_slots[2].memory;
    #pragma endscop                           { the text from pragma to pragma }
    }                                         *(double *)polyloom_slots[2].memory = t;
                                            }

The text of the part, and everything around the function, stays as the user wrote it; only declarations that
stand before the part are written anew. Nothing here knows how the part is understood or transformed.

Not in the papers.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pycparser import c_ast, c_generator

from polyloom.diagnostics import Source
from polyloom.frontends.c.integers.affine import constant_of
from polyloom.frontends.c.read import Part
from polyloom.frontends.c.scope.names import Variable
from polyloom.frontends.c.scope.types import Array, CType, Pointer
from polyloom.frontends.c.scope.writes import written_names
from polyloom.frontends.c.syntax.preprocess import as_pragmas
from polyloom.frontends.c.syntax.regions import Region, body_start, closing_brace
from polyloom.frontends.c.walk.inlining import RETURNED
from polyloom.ir.types import C_TYPES, ElementType
from polyloom.scop.model import Origin, Scop

SLOT = """\
struct polyloom_slot { void *memory; long long elements, extents[16]; };
extern void *polyloom_place(int slot, long long bytes);
extern void polyloom_before(void);
extern void polyloom_after(void);
"""
"""Where the caller put an array or scalar. ``polyloom_place``: memory for elements of structures.
``polyloom_before`` and ``polyloom_after`` are called right before and behind the part."""

ENTRY = "polyloom_enter"


_MACRO = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.MULTILINE)
"""What behind a part may change what its text means."""


class NotAlone(Exception):
    """The part cannot be cut out of its function; the text says why."""


@dataclass(frozen=True, eq=False)
class Slot:
    """An array or scalar of the part: its name in the model, its type, what C calls an element of it.

    ``path`` and ``levels``: ``("p", "x")`` and ``(1, 0)`` for ``p[i].x``. ``around``: the variables in whose
    memory its variable is kept (``p`` for ``p[0].n``), innermost first, each with how many elements at least.
    ``parameter``: an integer that the part does not change.
    """

    name: str
    type: ElementType
    variable: Variable
    path: tuple[str, ...]
    levels: tuple[int, ...]
    around: tuple[tuple[Variable, int], ...] = ()
    parameter: bool = False

    def element(self, indices: Sequence[str]) -> str:
        """Return one element, as many indices as there are levels."""
        parts, used = [], 0
        for name, count in zip(self.path, self.levels, strict=True):
            parts.append(name + "".join(f"[{index}]" for index in indices[used : used + count]))
            used += count
        return ".".join(parts)

    @property
    def first(self) -> str:
        """The first element."""
        return self.element(["0"] * sum(self.levels))

    @property
    def root(self) -> Variable:
        """The variable that the function or the file declares."""
        return self.around[-1][0] if self.around else self.variable


@dataclass(frozen=True, eq=False)
class Standalone:
    """A translation unit that defines ``void polyloom_enter(struct polyloom_slot *)``.

    ``slots``: what each of them holds. ``unconst``: whether the unit only builds, and means what is wanted,
    where ``const`` is ignored: a constant global, or member behind a pointer, is given by the caller.
    """

    text: str
    slots: tuple[Slot, ...]
    unconst: bool


def standalone(part: Part, scop: Scop) -> Standalone:
    """Return the user's file with the part as a function. Errors: ``NotAlone``."""
    source = part.state.places.source
    if part.extent == (0, 0):
        raise NotAlone("it stands in an included file")
    slots = tuple(_slots(part, scop))
    text, end = source.text, _end_of_function(part)
    start, stop = (len(text.encode()[:position].decode()) for position in part.extent)
    later = dict.fromkeys(_MACRO.findall(text[stop:end]))
    written = [
        _missing_functions(part),
        _line(source, 0),
        as_pragmas(text[:start]),
        *(f'#pragma push_macro("{name}")' for name in later),
        _line(source, start),
        as_pragmas(text[start:end]),
        *(f'#pragma pop_macro("{name}")' for name in later),
        SLOT,
        *_part(part, slots, f"{_line(source, start)}\n{as_pragmas(text[start:stop])}"),
        *_entry(slots),
        _line(source, end),
        as_pragmas(text[end:]),
        *_definitions(part, slots),
    ]
    unconst = any(
        s.root.constant and (s.root.origin is Origin.GLOBAL or s.around or len(s.path) > 1) for s in slots
    )
    return Standalone("\n".join(written) + "\n", slots, unconst)


def _end_of_function(part: Part) -> int:
    """Return the position behind the function's closing brace."""
    source = part.state.places.source
    start = body_start(part.region.function, part.state.places)
    if start is None:
        raise NotAlone("its function stands in an included file, or beside another one in a line")
    return closing_brace(source.text, start) + 1


def _line(source: Source, position: int) -> str:
    """Return the directive that gives what follows its place in the user's file."""
    name = source.name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'#line {source.text.count(chr(10), 0, position) + 1} "{name}"'


def _slots(part: Part, scop: Scop) -> Iterator[Slot]:
    """Yield the parameters and arrays of the part that are there before it."""
    function = part.state.scope.outer
    assert function is not None
    around = [*function.names.values(), *part.state.scope.file.names.values()]
    variables = {v.unique: v for v in around if isinstance(v, Variable)}
    variables |= {
        element.variable.unique: element.variable for element in part.state.elements.integers.values()
    }
    made = {product.name for product in part.state.products.values()}
    for p in scop.parameters:
        if p.name in made:
            continue
        if p.name not in variables:
            raise NotAlone(f"`{p.name}` is no variable of its own")
        found = variables[p.name]
        yield Slot(p.name, p.type, found, (found.name,), (0,), _around(found, part), parameter=True)
    for array in scop.arrays:
        if array.origin is not Origin.INNER:
            found = part.state.arrays[array.name].place.variable
            path = array.record or (found.name,)
            levels = array.levels or (_rank(found.type),)
            yield Slot(array.name, array.type, found, path, levels, _around(found, part))


def _around(variable: Variable, part: Part) -> tuple[tuple[Variable, int], ...]:
    """Return the variables in whose memory one is kept, with the number of elements that this takes."""
    elements = {**part.state.elements.integers, **part.state.elements.pointers}
    kept = next((element.place for element in elements.values() if element.variable is variable), None)
    if kept is None:
        return ()
    first = constant_of(kept.indices[0].affine) if kept.levels[0] and kept.indices[0].affine else 0
    return ((kept.variable, 1 + (first or 0)), *_around(kept.variable, part))


def _rank(ctype: CType) -> int:
    """Return how many subscripts C needs; the model may have more, of rows in one dimension."""
    match ctype:
        case Array(element=element):
            return 1 + _rank(element)
        case Pointer(target=target):
            return 1 + _rank(target)
        case _:
            return 0


def _part(part: Part, slots: Sequence[Slot], region: str) -> list[str]:
    """Return the part as a function without arguments, its locals filled from the slots and stored back."""
    own = [(k, s) for k, s in enumerate(slots) if s.root.origin is not Origin.GLOBAL]
    declared, depth = _declarations(part, own)
    stored = [line for k, slot in own for line in _stored(k, slot)]
    head = "static void polyloom_part(struct polyloom_slot *polyloom_slots)\n{"
    returned = next((s for _, s in own if s.variable.name == RETURNED), None)
    leave = "goto polyloom_end"
    if returned is not None:
        declared += [f"{C_TYPES[returned.type]} {RETURNED};"]
        leave = f"for (;; ({{ {leave}; }})) {RETURNED} ="
    begin, end = f"#define return {leave}\n{{", "}\n#undef return\npolyloom_end: ;"
    return [head, *declared, begin, region, end, *stored, "}" * (depth + 1)]


def _entry(slots: Sequence[Slot]) -> list[str]:
    """Return the function that fills globals from the slots, runs the part and stores them back."""
    shared = [(k, s) for k, s in enumerate(slots) if s.root.origin is Origin.GLOBAL]
    filled = _all_filled(shared)
    stored = [line for k, slot in shared for line in _stored(k, slot)]
    call = "polyloom_before();\npolyloom_part(polyloom_slots);\npolyloom_after();"
    return [f"void {ENTRY}(struct polyloom_slot *polyloom_slots)\n{{", *filled, call, *stored, "}"]


def _declarations(part: Part, slots: Sequence[tuple[int, Slot]]) -> tuple[list[str], int]:
    """Return the declarations that the part needs, and how many blocks they open.

    Errors: ``NotAlone`` for a local that the part reads, and that is neither a slot nor plainly computed.
    """
    nodes = list(_declared_before(part.region))
    last = {node.name: node for node in nodes if getattr(node, "name", None)}
    needed = _needed(part, nodes)
    changed = written_names(list(part.region.body), part.state.scope)
    arguments = set(map(id, _arguments(part.region)))
    lines, seen, depth = [], set[str](), 0
    for node in nodes:
        name = getattr(node, "name", None)
        if name is not None and name not in needed and not _defines_type(node):
            continue
        if name in seen:
            lines.append("{")
            depth += 1
        seen |= {name} if name else set()
        is_argument = id(node) in arguments
        here = [(k, s) for k, s in slots if s.root.name == name and last[name] is node]
        shown = _adjusted(node) if is_argument else node
        if here:
            lines += _bare(shown, here)
        elif is_argument:
            lines.append(f"{_given_by_nobody(shown)};")
        else:
            lines.append(f"{_kept(shown, name in changed)};")
    return lines, depth


def _arguments(region: Region) -> Iterator[c_ast.Decl]:
    listed = region.function.decl.type.args
    yield from (node for node in (listed.params if listed else ()) if isinstance(node, c_ast.Decl))


def _declared_before(region: Region) -> Iterator[c_ast.Node]:
    """Yield what the function declares before the part, in order: arguments, types, locals."""
    yield from _arguments(region)
    for node in region.before:
        for one in node.decls if isinstance(node, c_ast.DeclList) else [node]:
            if isinstance(one, c_ast.Decl | c_ast.Typedef):
                yield one


def _needed(part: Part, nodes: Sequence[c_ast.Node]) -> set[str]:
    """Return the names that the part mentions, and those in the declarations of these."""
    needed = {name for node in part.region.body for name in _names(node)}
    for node in reversed(nodes):
        if isinstance(node, c_ast.Typedef) or node.name is None or node.name in needed:
            needed |= set(_names(node))
    return needed


def _names(node: c_ast.Node) -> Iterator[str]:
    if isinstance(node, c_ast.ID):
        yield node.name
    if isinstance(node, c_ast.IdentifierType):
        yield from node.names
    for _, child in node.children():
        yield from _names(child)


def _defines_type(node: c_ast.Node) -> bool:
    """Whether a declaration says what a structure or an enumeration is."""
    if isinstance(node, c_ast.Struct | c_ast.Union):
        return node.decls is not None
    if isinstance(node, c_ast.Enum):
        return node.values is not None
    return any(_defines_type(child) for _, child in node.children())


def _adjusted(node: c_ast.Decl) -> c_ast.Decl:
    """Return an argument as a local: ``double a[n][m]`` is ``double (*a)[m]``."""
    found = copy.deepcopy(node)
    found.storage = []
    if isinstance(found.type, c_ast.ArrayDecl):
        quals = [q for q in found.type.dim_quals or [] if q != "static"]
        found.type = c_ast.PtrDecl(quals, found.type.type)
    return found


def _bare(node: c_ast.Decl, slots: Sequence[tuple[int, Slot]]) -> list[str]:
    """Return the declaration of a slot's variable without its first value, filled from the slot."""
    found = copy.deepcopy(node)
    found.init = None
    found.storage = [s for s in found.storage or [] if s != "register"]
    _drop_const(found)
    return [f"{_text(found)};", *_all_filled(slots)]


def _drop_const(node: c_ast.Node) -> None:
    """Drop ``const`` from a variable and from the elements of an array, not from what a pointer points to."""
    while not isinstance(node, c_ast.PtrDecl) and hasattr(node, "type"):
        if getattr(node, "quals", None):
            node.quals = [q for q in node.quals if q != "const"]
        node = node.type
    if isinstance(node, c_ast.PtrDecl):
        node.quals = [q for q in node.quals or [] if q != "const"]


def _given_by_nobody(node: c_ast.Decl) -> str:
    """Return the declaration of an argument on which nothing depends that the part computes."""
    if isinstance(node.type, c_ast.TypeDecl) and isinstance(node.type.type, c_ast.IdentifierType):
        node.init = c_ast.Constant("int", "1")
    return _text(node)


def _kept(node: c_ast.Node, changed: bool) -> str:
    """Return a declaration of a local that is no slot, with what it starts from."""
    init = getattr(node, "init", None)
    if init is None or _pure(init):
        return _text(node)
    if not changed or isinstance(
        node.type, c_ast.PtrDecl
    ):  # the elements of a pointer change, not the pointer
        raise NotAlone(f"`{node.name}` has a value that is computed before it")
    bare = copy.deepcopy(node)
    bare.init = None
    return _text(bare)


def _pure(node: c_ast.Node) -> bool:
    """Whether an expression can be computed again."""
    if isinstance(node, c_ast.UnaryOp) and node.op == "&":
        return _is_pure_place(node.expr)
    if isinstance(node, c_ast.FuncCall | c_ast.Assignment | c_ast.ArrayRef | c_ast.StructRef):
        return False
    if isinstance(node, c_ast.UnaryOp) and node.op in ("++", "--", "p++", "p--", "*"):
        return False
    return all(_pure(child) for _, child in node.children())


def _is_pure_place(node: c_ast.Node) -> bool:
    """Whether an lvalue names the same place again: ``b[n - 1]``, whose elements are not read."""
    match node:
        case c_ast.ID():
            return True
        case c_ast.ArrayRef(name=name, subscript=subscript):
            return _is_pure_place(name) and _pure(subscript)
        case _:
            return False


def _text(node: c_ast.Node) -> str:
    return str(c_generator.CGenerator().visit(node))


def _all_filled(slots: Sequence[tuple[int, Slot]]) -> list[str]:
    """Return statements that give variables what their slots hold, what is around a variable before it."""
    sizes = [f'_Static_assert(sizeof({s.first}) == {s.type.size}, "the size of {s.name}");' for _, s in slots]
    first = _placed(slots)
    names = sorted({slot.variable.name for _, slot in slots} | first.keys(), key=len)
    lines = [line for name in names for line in _of_variable(name, first, slots)]
    return [*sizes, *lines]


def _of_variable(name: str, first: dict[str, str], slots: Sequence[tuple[int, Slot]]) -> list[str]:
    """Return what makes room for a variable's elements, and then what gives it its slots' values."""
    placed = [first[name]] if name in first else []
    return [*placed, *(_filled(k, slot) for k, slot in slots if slot.variable.name == name)]


def _filled(k: int, slot: Slot) -> str:
    """Return a statement that gives a variable what its slot holds."""
    memory, kind = f"polyloom_slots[{k}].memory", C_TYPES[slot.type]
    if len(slot.path) > 1:
        given = f"(({kind} *){memory}) + {{at}}"  # the bytes, as of arrays: also a truth value that is 2
        return _for_all(k, slot, f"__builtin_memcpy((void *)&{{element}}, {given}, sizeof {{element}});")
    if _is_pointer(slot.variable):
        return f"{slot.variable.name} = {memory};"
    if isinstance(slot.variable.type, Array):
        return f"__builtin_memcpy({slot.variable.name}, {memory}, {_bytes(k, slot)});"
    return f"{slot.variable.name} = *({kind} *){memory};"


def _stored(k: int, slot: Slot) -> list[str]:
    """Return statements that put what a variable holds into its slot."""
    memory, kind = f"polyloom_slots[{k}].memory", C_TYPES[slot.type]
    if slot.parameter:
        return []
    if len(slot.path) > 1:
        return [_for_all(k, slot, f"(({kind} *){memory})[{{at}}] = {{element}};")]
    if _is_pointer(slot.variable):
        return []
    if isinstance(slot.variable.type, Array):
        return [f"__builtin_memcpy({memory}, {slot.variable.name}, {_bytes(k, slot)});"]
    return [f"*({kind} *){memory} = {slot.variable.name};"]


def _bytes(k: int, slot: Slot) -> str:
    return f"polyloom_slots[{k}].elements * {slot.type.size}"


def _is_pointer(variable: Variable) -> bool:
    """Whether C keeps an address in the variable, so that its elements may lie anywhere."""
    is_argument = variable.origin is Origin.ARGUMENT
    return isinstance(variable.type, Pointer) or (is_argument and isinstance(variable.type, Array))


def _placed(slots: Sequence[tuple[int, Slot]]) -> dict[str, str]:
    """Return statements that give pointers room for their elements, by the pointers that have no slot."""
    needed: dict[str, list[tuple[int, str]]] = {}
    for k, slot in slots:
        for variable, count in slot.around:
            if _is_pointer(variable):
                needed.setdefault(variable.name, []).append((k, str(count)))
        if len(slot.path) > 1 and _is_pointer(slot.variable):
            needed.setdefault(slot.variable.name, []).append((k, f"polyloom_slots[{k}].extents[0]"))
    return {name: _place(name, counts) for name, counts in needed.items()}


def _place(name: str, counts: Sequence[tuple[int, str]]) -> str:
    larger = [f"if ({count} > polyloom_most) polyloom_most = {count};" for _, count in counts]
    call = f"{name} = polyloom_place({counts[0][0]}, polyloom_most * (long long)sizeof({name}[0]));"
    return " ".join(["{ long long polyloom_most = 0;", *larger, call, "}"])


def _for_all(k: int, slot: Slot, statement: str) -> str:
    """Return loops over all elements of a member, each with its place in the slot."""
    indices = [f"polyloom_{d}" for d in range(sum(slot.levels))]
    at = "0"
    loops = []
    for d, index in enumerate(indices):
        extent = f"polyloom_slots[{k}].extents[{d}]"
        loops.append(f"for (long long {index} = 0; {index} < {extent}; {index}++)")
        at = f"({at}) * {extent} + {index}"
    return " ".join([*loops, statement.format(at=at, element=slot.element(indices))])


def _definitions(part: Part, slots: Sequence[Slot]) -> Iterator[str]:
    """Yield definitions of globals that another file of the user's program defines."""
    shared = {s.variable.name for s in slots if s.root.origin is Origin.GLOBAL}
    found: dict[str, list[c_ast.Decl]] = {}
    for node in part.tree.ext:
        if isinstance(node, c_ast.Decl) and node.name in shared:
            found.setdefault(node.name, []).append(node)
    for name, nodes in found.items():
        if all("extern" in (node.storage or []) for node in nodes):
            whole = [node for node in nodes if not _is_open(node)]
            if not whole:
                raise NotAlone(f"how many elements `{name}` has is not said")
            here = copy.deepcopy(whole[-1])
            here.storage = []
            yield f"{_text(here)};"


def _is_open(node: c_ast.Decl) -> bool:
    return isinstance(node.type, c_ast.ArrayDecl) and node.type.dim is None


_LESS = "({ __typeof__((a) + (b)) polyloom_a = (a), polyloom_b = (b); polyloom_a < polyloom_b ? %s : %s; })"
_FLOOR = "((n) / (d) - ((n) % (d) != 0 && (((n) < 0) != ((d) < 0))))"
_CEIL = "((n) / (d) + ((n) % (d) != 0 && (((n) < 0) == ((d) < 0))))"
_KNOWN = {
    **dict.fromkeys(("min", "imin", "umin"), ("a, b", _LESS % ("polyloom_a", "polyloom_b"))),
    **dict.fromkeys(("max", "imax", "umax"), ("a, b", _LESS % ("polyloom_b", "polyloom_a"))),
    **dict.fromkeys(("floord", "intFloor"), ("n, d", _FLOOR)),
    **dict.fromkeys(("ceild", "intCeil"), ("n, d", _CEIL)),
    "intMod": ("n, d", f"((n) - (d) * {_FLOOR})"),
    "__pencil_assume": ("x", "((void)0)"),
    "__pencil_kill": ("...", "((void)0)"),
}
"""Functions that polyhedral tools know without a definition."""


def _missing_functions(part: Part) -> str:
    """Return macros for functions that the file calls, and that polyhedral tools alone define."""
    called = {n.name.name for n in _calls(part.tree) if isinstance(n.name, c_ast.ID)}
    declared = {n.decl.name for n in part.tree.ext if isinstance(n, c_ast.FuncDef)}
    declared |= {n.name for n in part.tree.ext if isinstance(n, c_ast.Decl)}
    missing = [name for name in _KNOWN if name in called - declared]
    return "\n".join(f"#define {name}({_KNOWN[name][0]}) {_KNOWN[name][1]}" for name in missing)


def _calls(node: c_ast.Node) -> Iterator[c_ast.FuncCall]:
    if isinstance(node, c_ast.FuncCall):
        yield node
    for _, child in node.children():
        yield from _calls(child)
