"""Loads and stores of elements that lie near each other, as vectors of neighbours that are shuffled.

Each is C for compilers that have ``__builtin_shufflevector``; what stands behind it serves the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHUFFLE = "__builtin_shufflevector"
"""What gcc 12 and clang call it."""


def every(kind: str, copy: str, width: int, step: int) -> str:
    """Return lines that take every so many-th element out of vectors; the last one ends at the last."""
    first = [*(k * width for k in range(step - 1)), (step - 1) * (width - 1)]
    names = ", ".join(f"v{k}" for k in range(step))
    lines = [f"    if (step == {step}) {{", f"        {kind} {names};"]
    lines += [
        f"        {copy}(&v{k}, from{f' + {at}' if at else ''}, sizeof v{k});" for k, at in enumerate(first)
    ]
    chosen = [step * lane if step * lane < width else 0 for lane in range(width)]
    for k, at in list(enumerate(first))[1:]:
        end = at + width
        taken = [width + step * lane - at for lane in range(width)]
        before = first[k - 1] + width
        kept = chosen if k == 1 else [*range(width)]
        places = [t if before <= step * lane < end else kept[lane] for lane, t in enumerate(taken)]
        lines.append(f"        v{k} = {_shuffled((f'v{k - 1}', f'v{k}'), places)};")
    lines += [f"        return v{step - 1};", "    }"]
    return _where_shuffled("\n".join(lines) + "\n")


def backwards(kind: str, copy: str, width: int) -> str:
    """Return lines that load neighbours and reverse them."""
    return _where_shuffled(
        f"    if (step == -1) {{\n        {kind} v;\n        {copy}(&v, from - {width - 1}, sizeof v);\n"
        f"        return {_shuffled('vv', range(width)[::-1])};\n    }}\n"
    )


def backwards_stored(kind: str, copy: str, width: int) -> str:
    """Return lines that reverse a vector and store it as neighbours."""
    return _where_shuffled(
        f"    if (step == -1) {{\n        const {kind} v = {_shuffled('aa', range(width)[::-1])};\n"
        f"        {copy}(to - {width - 1}, &v, sizeof v);\n        return;\n    }}\n"
    )


def interleaved(kind: str, copy: str, width: int, count: int) -> str:
    """Return lines that store vectors ``v0``, ``v1``, ... whose elements take turns."""
    names = [f"v{k}" for k in range(count)]
    if count == 4:  # two pairs, and these as pairs: eight shuffles in place of twelve
        pairs = [(f"u{k}", _turns(names[k % 2 :: 2], k // 2, width)) for k in range(4)]
        lines = [f"    const {kind} {name} = {text};" for name, text in pairs]
        ends = [_turns(("u0", "u1") if k < 2 else ("u2", "u3"), k % 2, width) for k in range(4)]
    else:
        lines, ends = [], [_turns(names, k, width) for k in range(count)]
    for k, text in enumerate(ends):
        lines.append(f"    const {kind} w{k} = {text};")
        lines.append(f"    {copy}(to{f' + {k * width}' if k else ''}, &w{k}, sizeof w{k});")
    return _where_shuffled("\n".join([*lines, "    return;"]) + "\n")


def apart(kind: str, copy: str, width: int, count: int) -> str:
    """Return lines that load vectors whose elements take turns into ``v[0]``, ``v[1]``, ..."""
    names = [f"w{k}" for k in range(count)]
    lines = [f"    {kind} {', '.join(names)};"]
    lines += [f"    {copy}(&w{k}, from{f' + {k * width}' if k else ''}, sizeof w{k});" for k in range(count)]
    if count == 4:  # every second of two pairs, and of these: eight shuffles in place of twelve
        pairs = [(f"u{k}", _every_second(names[k % 2 * 2 :][:2], k // 2, width)) for k in range(4)]
        lines += [f"    const {kind} {name} = {text};" for name, text in pairs]
        ends = [_every_second(["u0", "u1"] if k % 2 == 0 else ["u2", "u3"], k // 2, width) for k in range(4)]
    else:
        ends = [_part(names, k, width) for k in range(count)]
    lines += [f"    v[{k}] = {text};" for k, text in enumerate(ends)]
    return _where_shuffled("\n".join([*lines, "    return;"]) + "\n")


def part(name: str, lanes: Iterable[int]) -> str:
    """Return lines that take some elements of a vector as a shorter one."""
    return _where_shuffled(f"    return {_shuffled((name, name), lanes)};\n")


def _every_second(names: Sequence[str], first: int, width: int) -> str:
    return _shuffled(names, [first + 2 * lane for lane in range(width)])


def _part(names: Sequence[str], number: int, width: int) -> str:
    """Return every third element of three vectors in a row, or every second of two, from one on."""
    at = [number + len(names) * lane for lane in range(width)]
    text = _shuffled(names[:2], [p if p < 2 * width else 0 for p in at])
    for name in names[2:]:
        text = _shuffled((text, name), [k if p < 2 * width else p - width for k, p in enumerate(at)])
    return text


def _turns(names: Sequence[str], number: int, width: int) -> str:
    """Return vector ``number`` of those whose elements come from several in turn."""
    count = len(names)
    at = range(number * width, (number + 1) * width)
    text = _shuffled(names[:2], [(p % count == 1) * width + p // count for p in at])
    for k, name in enumerate(names[2:], 2):
        places = [width + p // count if p % count == k else lane for lane, p in enumerate(at)]
        text = _shuffled((text, name), places)
    return text


def _shuffled(vectors: Sequence[str], chosen: Iterable[int]) -> str:
    return f"{SHUFFLE}({', '.join([*vectors, *map(str, chosen)])})"


def _where_shuffled(lines: str) -> str:
    """Return lines for compilers that have the shuffle of vectors."""
    return f"#if defined __has_builtin\n#if __has_builtin({SHUFFLE})\n{lines}#endif\n#endif\n"
