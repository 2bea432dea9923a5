"""CSL text to a syntax tree: files, declarations, functions and statements."""

from __future__ import annotations

from typing import Literal, cast

from polyloom.csl.syntax import tree
from polyloom.csl.syntax.expressions import ExpressionParser
from polyloom.diagnostics import Source

_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")


def parse(source: Source) -> tree.File:
    """Return the syntax tree of a file.

    Errors: ``csl-syntax``, ``csl-character``, ``csl-string``, ``csl-number``, ``csl-keyword``, ``csl-chain``,
    ``csl-too-deep``. Source: the SDK's public language guide; it has no grammar, so precedences are those of
    Zig, which the examples agree with.
    """
    parser = Parser(source)
    items: list[tree.Item] = []
    while parser.token.kind != "end":
        items.append(parser.item())
    return tree.File(source, tuple(items))


def parse_expression(source: Source) -> tree.Expression:
    """Return the tree of a text that is one expression. Errors: those of ``parse``."""
    parser = Parser(source)
    found = parser.expression()
    if parser.token.kind != "end":
        parser.fail("the end of the expression")
    return found


class Parser(ExpressionParser):
    """Reads statements and what stands at the top of a file."""

    def item(self) -> tree.Item:
        """Return one declaration, function or block at the top of a file."""
        start = self.token.start
        if self.at("comptime") and self.after(1).text == "{":
            self.take()
            block = self.block()
            return tree.ComptimeBlock(self.since(start), block)
        if self.at("layout"):
            self.take()
            block = self.block()
            return tree.LayoutBlock(self.since(start), block)
        linkage = self.take().text if self.at("export", "extern") else ""
        if self.at("fn", "task", "inline"):
            return self._function(start, linkage)
        if self.at("const", "var", "param"):
            return self._declaration(start, linkage)
        return self.fail(
            "a declaration, `fn`, `task`, `comptime` or `layout`",
            ["statements stand inside functions, tasks and blocks"],
        )

    def _function(self, start: int, linkage: str) -> tree.Function:
        is_inline = self.skip("inline")
        if not self.at("fn", "task"):
            self.fail("`fn` or `task`")
        kind: Literal["fn", "task"] = "fn" if self.take().text == "fn" else "task"
        name = self.name(f"the name of a {'function' if kind == 'fn' else 'task'}")
        parameters = self._parameters()
        result = self.type()
        body = None if linkage == "extern" and self.skip(";") else self.block()
        span = self.since(start)
        return tree.Function(
            span, kind, name.text, self.span_of(name), parameters, result, body, linkage, is_inline
        )

    def _parameters(self) -> tuple[tree.Parameter, ...]:
        self.expect("(")
        found: list[tree.Parameter] = []
        while not self.skip(")"):
            start = self.token.start
            is_comptime = self.skip("comptime")
            name = self.name("a parameter or `)`").text
            self.expect(":", helps=["a parameter is `name: type`"])
            type_ = self.type()
            found.append(tree.Parameter(self.since(start), name, type_, is_comptime))
            if not self.at(")"):
                self.expect(",", "`,` or `)`")
        return tuple(found)

    def _declaration(self, start: int, linkage: str = "", is_comptime: bool = False) -> tree.Declaration:
        kind = cast(Literal["const", "var", "param"], self.take().text)
        name = self.name(f"a name behind `{kind}`")
        type_ = self.type() if self.skip(":") else None
        attributes: dict[str, tree.Expression] = {}
        while self.at("align", "linksection", "linkname"):
            word = self.take().text
            attributes[word] = self.parenthesised()
        value = self.expression() if self.skip("=") else None
        self.expect(";")
        return tree.Declaration(
            self.since(start),
            kind,
            name.text,
            self.span_of(name),
            type_,
            value,
            is_comptime,
            linkage,
            attributes.get("align"),
            attributes.get("linksection"),
            attributes.get("linkname"),
        )

    def block(self) -> tree.Block:
        """Return ``{ ... }`` with its label."""
        return self.nested(self._block)

    def _block(self) -> tree.Block:
        start = self.token.start
        label = self._label()
        self.expect("{")
        body: list[tree.Statement] = []
        while not self.skip("}"):
            if self.token.kind == "end":
                self.fail("`}`", ["a block that begins with `{` ends in `}`"])
            body.append(self.statement())
        return tree.Block(self.since(start), label, tuple(body))

    def _label(self) -> str | None:
        if self.token.kind == "name" and self.after(1).text == ":":
            label = self.take().text
            self.take()
            return label
        return None

    def statement(self) -> tree.Statement:
        """Return a statement, its ``;`` taken."""
        return self.nested(self._statement)

    def _statement(self) -> tree.Statement:
        start = self.token.start
        is_comptime = self.skip("comptime") or self.skip("inline")
        if self.at("const", "var"):
            return self._declaration(start, is_comptime=is_comptime)
        if self.at("if"):
            return self._if(start, is_comptime)
        if self.at("{") or (self.token.kind == "name" and self.after(1).text == ":"):
            return self._labelled(start, is_comptime)
        if self.at("while", "for"):
            return self._loop(start, None, is_comptime)
        if self.at("switch") and not is_comptime:
            switch = self.switch()
            self.skip(";")
            return tree.ExpressionStatement(self.since(start), switch)
        if self.at("return", "break", "continue"):
            return self._jump(start)
        if is_comptime:
            self.position -= 1
        simple = self._simple()
        self.expect(";")
        return simple

    def _labelled(self, start: int, is_comptime: bool) -> tree.Statement:
        if self.token.kind == "name" and self.after(2).text in ("while", "for", "comptime", "inline"):
            label = self._label()
            is_comptime = self.skip("comptime") or self.skip("inline") or is_comptime
            return self._loop(start, label, is_comptime)
        block = self.block()
        return tree.Block(self.since(start), block.label, block.body, is_comptime)

    def _if(self, start: int, is_comptime: bool) -> tree.Statement:
        self.take()
        condition = self.parenthesised()
        ends = not self.at("{", "if", "while", "for", "switch")
        then = self._branch()
        otherwise = None
        if self.skip("else"):
            otherwise = self.statement()
        elif ends:
            self.expect(";")
        return tree.If(self.since(start), condition, then, otherwise, is_comptime)

    def _branch(self) -> tree.Statement:
        """Return what stands behind a condition: a block, or a statement without its ``;``."""
        if self.at("{"):
            return self.block()
        if self.at("if", "while", "for", "switch"):
            return self.statement()
        if self.at("return", "break", "continue"):
            return self._jump(self.token.start, ends=False)
        return self._simple()

    def prong_body(self) -> tree.Statement:
        """Return what stands behind ``=>``: a statement without its ``;``, or a value."""
        if self.at("if", "switch"):
            return self._simple()
        return self.nested(self._branch)

    def _loop(self, start: int, label: str | None, is_comptime: bool) -> tree.Statement:
        if self.skip("while"):
            condition = self.parenthesised()
            step = None
            if self.skip(":"):
                self.expect("(")
                step = self._simple()
                self.expect(")")
            body = self.statement()
            return tree.While(self.since(start), label, condition, step, body, is_comptime)
        self.expect("for", "`while` or `for`")
        sequence = self.parenthesised()
        self.expect("|", helps=["a loop reads `for (@range(u16, n)) |i| { ... }`"])
        element = self._captured()
        index = self._captured() if self.skip(",") else None
        self.expect("|")
        body = self.statement()
        return tree.For(self.since(start), label, sequence, element, index, body, is_comptime)

    def _captured(self) -> tree.Name:
        token = self.name("the name of a loop's variable")
        return tree.Name(self.span_of(token), token.text)

    def _jump(self, start: int, ends: bool = True) -> tree.Statement:
        word = self.take().text
        label = self.name("a label").text if word != "return" and self.skip(":") else None
        value = None
        if word != "continue" and not self.at(";", ",", "else", "}"):
            value = self.expression()
        if ends:
            self.expect(";")
        span = self.since(start)
        if word == "return":
            return tree.Return(span, value)
        return tree.Break(span, label, value) if word == "break" else tree.Continue(span, label)

    def _simple(self) -> tree.Statement:
        start = self.token.start
        target = self.expression()
        if self.at(*_ASSIGNMENTS):
            operator = cast(tree.BinaryOperator | None, self.take().text[:-1] or None)
            value = self.expression()
            return tree.Assign(self.since(start), operator, target, value)
        return tree.ExpressionStatement(self.since(start), target)
