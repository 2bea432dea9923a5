"""Whether what a statement leaves in a variable may be read after it, on any way through a function.

    for (i = 0; i < n; i++) ..         <- live behind this loop?
    for (i = n; i-- > 0;)              no: it is written first
      if (a[i]) goto found;            a jump leads to its label: what is live there is live here

From the end of the function to its beginning; around loops, and over jumps back, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pycparser import c_ast

from polyloom.frontends.c.syntax.nodes import nodes_in


def is_live_behind(body: c_ast.Node, place: c_ast.Node, name: str) -> bool:
    """Return whether a variable may be read behind a statement before it is written again."""
    found = _Liveness(name, place)
    before: dict[str, bool] | None = None
    while before != found.labels:
        before = dict(found.labels)
        found.statement(body, False, _Jumps())
    return found.behind


@dataclass(frozen=True)
class _Jumps:
    """Whether the variable is live where jumps lead."""

    breaks: bool = False
    continues: bool = False

    @property
    def any(self) -> bool:
        return self.breaks or self.continues


@dataclass(eq=False)
class _Liveness:
    """``labels``: whether the variable is live there, as far as it is known; ``cases``: in a ``switch``."""

    name: str
    place: c_ast.Node
    behind: bool = False
    labels: dict[str, bool] = field(default_factory=dict)
    cases: list[bool] = field(default_factory=list)

    def statement(self, node: c_ast.Node | None, after: bool, jumps: _Jumps) -> bool:
        """Return whether the variable is live before a statement. ``after``: whether it is behind it."""
        if node is self.place:
            self.behind |= after
        match node:
            case None:
                return after
            case c_ast.Compound(block_items=items):
                return self._block(items or (), after, jumps)
            case c_ast.If(cond=cond, iftrue=then, iffalse=otherwise):
                sides = [self.statement(side, after, jumps) for side in (then, otherwise)]
                return self.expression(cond, any(sides))
            case c_ast.For():
                return self._for(node, after)
            case c_ast.While(cond=cond, stmt=body):
                return self._loop(cond, body, None, after)
            case c_ast.DoWhile(cond=cond, stmt=body):
                begin = False
                for _ in range(2):
                    tested = self.expression(cond, begin or after)
                    begin = self.statement(body, tested, _Jumps(after, tested))
                return begin
            case c_ast.Switch():
                return self._switch(node, after, jumps)
            case c_ast.Case(stmts=stmts) | c_ast.Default(stmts=stmts):
                live = self._block(stmts or (), after, jumps)
                self.cases.append(live)
                return live
            case c_ast.Label(name=label, stmt=stmt):
                live = self.statement(stmt, after, jumps)
                self.labels[label] = self.labels.get(label, False) or live
                return live
            case c_ast.Goto(name=label):
                return self.labels.setdefault(label, False)
            case c_ast.Break():
                return jumps.breaks
            case c_ast.Continue():
                return jumps.continues
            case c_ast.Return(expr=value):
                return self.expression(value, False)
            case _:
                return self.expression(node, after)

    def _block(self, items: Sequence[c_ast.Node], after: bool, jumps: _Jumps) -> bool:
        live = after
        for k in range(len(items) - 1, -1, -1):
            live = self.statement(items[k], live, jumps)
            if isinstance(items[k], c_ast.Decl) and items[k].name == self.name:
                live = self._hidden(items[k + 1 :], after, jumps)
        return live

    def _hidden(self, nodes: Sequence[c_ast.Node], after: bool, jumps: _Jumps) -> bool:
        """Return whether a variable is live before statements in which one of its name is declared.

        Where the place is among them it is this one, which is dead before.
        """
        inside = [n for node in nodes for n in nodes_in(node)]
        if any(n is self.place for n in inside):
            return False
        self.labels |= {n.name: True for n in inside if isinstance(n, c_ast.Label)}
        jumped = any(self.labels.get(n.name, False) for n in inside if isinstance(n, c_ast.Goto))
        return after or jumps.any or jumped

    def _for(self, node: c_ast.For, after: bool) -> bool:
        live = self._loop(node.cond, node.stmt, node.next, after)
        declared = node.init.decls if isinstance(node.init, c_ast.DeclList) else []
        if any(d.name == self.name for d in declared):
            return self._hidden([node.stmt], after, _Jumps())
        return self.expression(node.init, live)

    def _loop(
        self, cond: c_ast.Node | None, body: c_ast.Node | None, step: c_ast.Node | None, after: bool
    ) -> bool:
        """Return whether a variable is live where a loop asks its condition."""
        live = False
        for _ in range(2):
            end = self.expression(step, live)
            begin = self.statement(body, end, _Jumps(after, end))
            live = begin if cond is None else self.expression(cond, begin or after)
        return live

    def _switch(self, node: c_ast.Switch, after: bool, jumps: _Jumps) -> bool:
        around, self.cases = self.cases, []
        self.statement(node.stmt, after, _Jumps(after, jumps.continues))
        found, self.cases = self.cases, around
        return self.expression(node.cond, after or any(found))

    def expression(self, node: c_ast.Node | None, after: bool) -> bool:
        """Return whether the variable is live before an expression, or a declaration."""
        first = self._first_use(node)
        return after if first is None else first

    def _first_use(self, node: c_ast.Node | None) -> bool | None:
        """Tell whether the variable is read before it is written (True), surely written first (False)."""
        match node:
            case None:
                return None
            case c_ast.ID(name=found):
                return True if found == self.name else None
            case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=found), rvalue=value) if found == self.name:
                return bool(self._first_use(value))
            case c_ast.TernaryOp(cond=cond, iftrue=then, iffalse=otherwise):
                sides = {self._first_use(then), self._first_use(otherwise)}
                chosen = True if True in sides else False if sides == {False} else None
                first = self._first_use(cond)
                return chosen if first is None else first
            case c_ast.BinaryOp(op="&&" | "||", left=left, right=right):
                first = self._first_use(left)
                return first if first is not None else self._first_use(right) or None
            case c_ast.StructRef(name=base):
                return self._first_use(base)
            case _:
                uses = (self._first_use(child) for _, child in node.children())
                return next((found for found in uses if found is not None), None)
