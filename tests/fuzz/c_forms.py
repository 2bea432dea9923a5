"""Forms of C that random programs take beside loops and arrays: structures, pointers, arrays of open sizes,
functions of the file, loops of other shapes, arithmetic of integers that wraps, divides and shifts.

Some are refused (``while``): what is accepted has to be right.
"""

from __future__ import annotations

from collections.abc import Callable

from c_programs import (
    EXTENT,
    RANKS,
    TYPES,
    CProgram,
    Scope,
    element,
    expression,
    random_program,
    static_condition,
    subscript,
)

INTEGERS = ("int", "long", "short", "unsigned char", "signed char", "unsigned", "unsigned short")


def program_with_forms(seed: int, name: str = "kernel") -> CProgram:
    """Make the program of a seed, with forms."""
    return random_program(seed, name, form)


def form(s: Scope) -> list[str]:
    """Return lines of one form."""
    return s.random.choice(FORMS)(s)


def integer(s: Scope) -> str:
    """Return an integer of data, an iterator or a size, small enough that products do not overflow."""
    r = s.random
    whole = [n for n in RANKS if "float" not in TYPES[s.types[n]]]
    choices = [*s.iterators, "n", "m", str(r.randint(-5, 9)), f"{r.randint(1, 9)}u", f"{r.randint(-3, 9)}L"]
    for name in whole * 2:
        choices.append(name + "".join(f"[{subscript(s)}]" for _ in range(RANKS[name])))
    return r.choice(choices)


def arithmetic(s: Scope, depth: int = 2) -> str:
    """Return a value of integers: what C says of their types, quotients and remainders decides."""
    r = s.random
    if not depth:
        return integer(s)
    left, right = arithmetic(s, depth - 1), arithmetic(s, depth - 1)
    match r.randrange(10):
        case 0:
            return f"({left} / {r.choice(['2', '3', '-3', '7', '2u', '4L'])})"
        case 1:
            return f"({left} % {r.choice(['2', '3', '-5', '7', '3u', '8L'])})"
        case 2:
            return f"({left} {r.choice('&|^')} {right})"
        case 3:
            return f"({left} >> {r.randint(0, 3)})"
        case 4:
            return f"(({r.choice(INTEGERS)}){left})"
        case 5:
            return f"({left} {r.choice(['<', '<=', '==', '!=', '>', '>='])} {right})"
        case 6:
            return f"({r.choice('~-!')} {left})"
        case 7:
            return f"({left} {r.choice(['<', '>'])} {right} ? {left} : {right})"
        case _:
            return f"({left} {r.choice('+-')} {right})"


def _assigned(s: Scope, target: str, right: str) -> str:
    return f"{target} = {s.converted(target, right)};"


def integers(s: Scope) -> list[str]:
    return [_assigned(s, element(s, computed=False), arithmetic(s)) for _ in range(2)]


def in_place(s: Scope) -> list[str]:
    """Compound assignments of integers."""
    whole = [n for n in RANKS if "float" not in TYPES[s.types[n]]]
    if not whole:
        return integers(s)
    name = s.random.choice(whole)
    target = name + "".join(f"[{subscript(s)}]" for _ in range(RANKS[name]))
    sign = s.random.choice(["&=", "|=", "^=", "+=", "-="])
    change = s.random.choice([f"{target}++;", f"--{target};", f"{target} /= 3;", f"{target} >>= 1;"])
    return [f"{target} {sign} {arithmetic(s, 1)};", change]


def record(s: Scope) -> list[str]:
    r = s.fresh("r")
    lines = [f"struct {{ int x; double y; struct {{ long v[3]; }} z; }} {r};"]
    lines += [f"{r}.x = (int)(long)({expression(s)});", f"{r}.y = {expression(s)};"]
    lines += [f"{r}.z.v[{k}] = (long)({expression(s)});" for k in range(3)]
    target = element(s, computed=False)
    return [
        *lines,
        f"{target} = (long)({r}.x - {r}.y) + {r}.z.v[{s.random.choice(['0', '1', '2', 'm % 3'])}];",
    ]


def records(s: Scope) -> list[str]:
    q, i, j = s.fresh("q"), s.fresh("i"), s.fresh("i")
    inner = s.inner(j)
    target = element(inner, computed=False)
    return [
        f"struct {{ short x; long y; }} {q}[{EXTENT}];",
        f"for (int {i} = 0; {i} < {EXTENT}; {i}++) {{",
        f"  {q}[{i}].x = (long)({expression(s)}) + {i};",
        f"  {q}[{i}].y = {i} - (long)({element(s)});",
        "}",
        f"for (int {j} = 0; {j} < n; {j}++) {{",
        f"  {target} = {q}[{subscript(inner)}].x + {q}[{subscript(inner)}].y;",
        f"  {q}[{subscript(inner)}].x += {q}[{j}].y;",
        "}",
        f"{element(s, computed=False)} = {q}[n].x;",
    ]


def open_array(s: Scope) -> list[str]:
    v, i, j = s.fresh("v"), s.fresh("i"), s.fresh("i")
    inner = s.inner(j)
    kind = s.random.choice(["int", "double", "long"])
    filled, target = s.inner(i), element(inner, computed=False)
    read = f"{v}[{s.random.choice([j, f'{j} + 1', f'n - {j}', f'n + 1 - {j}'])}]"
    real = f"(long)({read})" if kind == "double" else read
    fill = expression(filled) if kind == "double" else f"(long)({expression(filled)})"
    return [
        f"{kind} {v}[n + 2];",
        f"for (int {i} = 0; {i} < n + 2; {i}++) {v}[{i}] = {fill};",
        f"for (int {j} = 0; {j} < n; {j}++) {target} {s.random.choice(['=', '+=', '-='])} {real};",
    ]


def open_matrix(s: Scope) -> list[str]:
    v, i, j = s.fresh("v"), s.fresh("i"), s.fresh("i")
    inner = s.inner(i, j)
    place = s.random.choice([f"{v}[{i}][{j}]", f"{v}[m - {i}][n - {j}]", f"*(*({v} + {i}) + {j})"])
    return [
        f"long {v}[m + 1][n + 1];",
        f"for (int {i} = 0; {i} <= m; {i}++)",
        f"  for (int {j} = 0; {j} <= n; {j}++) {place} = (long)({expression(inner)});",
        f"for (int {i} = 0; {i} < m; {i}++)",
        f"  for (int {j} = 1; {j} <= n; {j}++) {v}[{i}][{j}] += {v}[{i} + 1][{j} - 1];",
        f"for (int {j} = 0; {j} <= n; {j}++) {element(s.inner(j), computed=False)} = {v}[{j} % (2)][{j}];",
    ]


def row(s: Scope) -> list[str]:
    """A pointer to a row of a matrix, or into a vector."""
    p = s.fresh("p")
    if s.random.random() < 0.5:
        name = s.random.choice([n for n in RANKS if RANKS[n] == 2])
        declared = f"{s.types[name]} *{p} = {name}[{subscript(s)}];"
    else:
        name = s.random.choice([n for n in RANKS if RANKS[n] == 1])
        at = s.random.choice([str(s.random.randint(0, 2)), *s.iterators, "n"])
        declared = f"{s.types[name]} *{p} = {s.random.choice([f'&{name}[{at}]', f'{name} + {at}'])};"
    kind = s.types[name]
    i = s.fresh("i")
    inner = s.inner(i)
    left, right = (s.random.choice([f"{p}[{i}]", f"*({p} + {i})", f"{p}[{i} + 1]"]) for _ in range(2))
    change = f"({kind})(long)({expression(inner)} - {right})"
    moved = [f"{p} += {s.random.randint(1, 2)};"] if s.random.random() < 0.03 else []
    return [declared, *moved, f"for (int {i} = 0; {i} < n; {i}++) {left} = {change};"]


def helper(s: Scope) -> list[str]:
    """A function of the file, called in a loop."""
    f, i = s.fresh(f"{s.name}_f"), s.fresh("i")
    inner = s.inner(i)
    kind, other = s.random.choice(INTEGERS), s.random.choice(INTEGERS)
    body = s.random.choice(
        [
            "return x > y ? x - y : y;",
            "int t = x; t += y; x = 2; return t - x;",
            "long t[2]; t[0] = x; t[1] = y; return t[0] * 2 - t[1];",
            "int s = 0; for (int k = 0; k < 3; k++) s += k * x - y; return s;",
            "if (x < y) return x; return y + 1;",
            "y = x; x++; return x + y;",
        ]
    )
    s.helpers.append(f"static inline {kind} {f}({other} x, int y) {{ {body} }}")
    target = element(inner, computed=False)
    argument = f"(int)(long)({expression(inner)})"
    call = f"{f}({argument}, {s.random.choice([i, 'n', '-2', argument])})"
    return [f"for (int {i} = 0; {i} < n; {i}++) {target} = {call};"]


def pointer_helper(s: Scope) -> list[str]:
    f, i = s.fresh(f"{s.name}_f"), s.fresh("i")
    name = s.random.choice([n for n in RANKS if RANKS[n] == 1])
    kind = s.types[name]
    body = s.random.choice(
        [
            "for (int k = 0; k < count; k++) p[k] = p[k + 1] - by;",
            "short *q = p + 2; q[count] = by; *q = count;".replace("short", kind),
            "*p = by; *(p + count) -= p[by % 3];",
            "for (int k = count; k > 0; k--) p[k] -= p[k - 1];",
        ]
    )
    s.helpers.append(f"static inline void {f}({kind} *p, int count, int by) {{ {body} }}")
    at = s.random.choice([name, f"&{name}[2]", f"{name} + {i}", f"{name} + 3"])
    return [f"for (int {i} = 0; {i} < m; {i}++) {f}({at}, {s.random.choice(['n', i, '3'])}, {i});"]


def loop(s: Scope) -> list[str]:
    """Loops of other shapes."""
    i, j, k = s.fresh("i"), s.fresh("i"), s.fresh("k")
    head = s.random.choice(
        [
            f"for (unsigned {i} = 0; {i} < 7u; {i}++)",
            f"for (long {i} = 1; {i} != 8; {i} += 1)",
            f"for (int {i} = n; {i}-- > 0; )",
            f"for (int {i} = 0, {j} = n; {i} < {j}; {i}++, {j}--)",
            f"for (short {i} = 0; {i} < n && {i} < m; {i}++)",
            f"for (int {i} = m; {i} >= 1; {i} -= 2)",
            f"for (int {i} = 9; {i} > n % 3; {i}--)",
        ]
    )
    inner = s.inner(i)
    last = _assigned(s, element(inner), expression(inner))
    body = s.random.choice(
        [
            f"{{ {element(inner, computed=False)} = (long)({expression(inner)}); }}",
            f"{{ if ({static_condition(inner)}) continue; {last} }}",
            f"{{ a[{k}++] = {i} + 1; }}",
            f"{{ {k} += 2; {element(inner, computed=False)} = {k}; }}",
            f"{{ {element(inner, False)} = {element(inner, False)} = (long)({expression(inner)}); }}",
        ]
    )
    return [f"int {k} = {s.random.randint(0, 2)};", f"{head} {body}", f"b[{s.random.randint(0, 5)}] = {k};"]


def jumps(s: Scope) -> list[str]:
    """A loop whose iterations end early, or choose by cases."""
    i = s.fresh("i")
    body = _steps(s.inner(i), 2, ["continue;"])
    return [f"for (int {i} = 0; {i} < {s.random.choice(['n', 'm', '7'])}; {i}++) {{", *body, "}"]


def _steps(s: Scope, depth: int, ends: list[str]) -> list[str]:
    """Return statements of which some jump to the end of what is around them, as ``ends`` do."""
    r, lines = s.random, list[str]()
    for _ in range(r.randint(1, 3)):
        kind = r.random() if depth else 1.0
        if kind < 0.25:
            lines.append(f"if ({_on_data(s)}) {r.choice(ends)}")
        elif kind < 0.5:
            lines += [f"if ({_on_data(s)}) {{", *_steps(s, depth - 1, ends)]
            lines += [r.choice([*ends, ""]), "}"]
            lines += ["else {", *_steps(s, depth - 1, ends), "}"] if r.random() < 0.4 else []
        elif kind < 0.75:
            lines += [f"switch ({r.choice(['m', 'n', s.iterators[-1], integer(s)])}) {{"]
            for label in r.sample(["case 0:", "case 1: case 3:", "case 2:", "case -1:", "default:"], 3):
                lines += [label, *_steps(s, depth - 1, ["break;", *ends]), r.choice(["break;", "break;", ""])]
            lines.append("}")
        else:
            lines.append(_assigned(s, element(s, computed=False), expression(s)))
    return lines


def _on_data(s: Scope) -> str:
    r = s.random
    one = f"{arithmetic(s, 1)} {r.choice(['<', '>=', '==', '!='])} {r.randint(-2, 4)}"
    return r.choice([one, one, f"{one} || {integer(s)} > 3", f"{static_condition(s)} && {one}", f"!({one})"])


def refused(s: Scope) -> list[str]:
    """What is refused today, seldom: a refusal ends the whole program."""
    if s.random.random() < 0.8:
        return integers(s)
    w = s.fresh("w")
    first, second = (_assigned(s, element(s, computed=False), expression(s)) for _ in range(2))
    return s.random.choice(
        [
            [f"switch (m++ & 3) {{ case 0: {first} break; case 1: {first} case 2: {second} }}"],
            [f"int {w} = 0;", f"while ({w} < n) {{ a[{w}] = {w}; {w}++; }}"],
            [f"int {w} = 0;", f"do {{ b[{w}] = {w} + 1; }} while (++{w} < n);"],
            [f"int {w} = 3, *{w}p = &{w};", f"*{w}p += 2;", f"a[1] = {w};"],
            [f"union {{ int x; float y; }} {w};", f"{w}.x = 3;", f"a[0] = {w}.x;"],
        ]
    )


FORMS: tuple[Callable[[Scope], list[str]], ...] = (
    integers, integers, in_place, record, records, open_array, open_matrix, row, row, helper, helper,
    pointer_helper, loop, loop, jumps, jumps, refused,
)  # fmt: skip
