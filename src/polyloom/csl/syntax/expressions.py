"""Expressions and types of CSL, by recursive descent; operators by precedence."""

from __future__ import annotations

from typing import Literal, cast

from polyloom.csl.syntax import tree
from polyloom.csl.syntax.cursor import Cursor
from polyloom.csl.syntax.tokens import Token
from polyloom.diagnostics import PolyloomError, error

LEVELS: tuple[tuple[str, ...], ...] = (
    ("or",),
    ("and",),
    ("==", "!=", "<", ">", "<=", ">="),
    ("&", "|", "^"),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators that bind weaker come first; those of a level go from left to right; comparisons do not chain."""

_COMPARISON = 2
_LEVEL_OF = {operator: level for level, row in enumerate(LEVELS) for operator in row}

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "0": "\0"}


class ExpressionParser(Cursor):
    """Reads expressions; statements are the subclass's."""

    def block(self) -> tree.Block:
        """Return a block of statements."""
        raise NotImplementedError

    def prong_body(self) -> tree.Statement:
        """Return what stands behind ``=>``."""
        raise NotImplementedError

    def expression(self) -> tree.Expression:
        """Return an expression. Errors: ``csl-syntax``, ``csl-too-deep``, ``csl-chain``."""
        return self.nested(self._binary)

    def _binary(self, weakest: int = 0) -> tree.Expression:
        start = self.token.start
        left = self._unary()
        compared = False
        while (level := self._level()) >= weakest:
            if level == _COMPARISON and compared:
                raise PolyloomError(
                    error(
                        "csl-chain",
                        "comparisons do not chain",
                        self.here(),
                        helps=["write `a < b and b < c`, or put one of them in parentheses"],
                    )
                )
            compared = level == _COMPARISON
            operator = cast(tree.BinaryOperator, self.take().text)
            right = self._binary(level + 1)
            left = tree.Binary(self.since(start), operator, left, right)
        return left

    def _level(self) -> int:
        return _LEVEL_OF.get(self.token.text, -1) if self.token.kind in ("operator", "keyword") else -1

    def _unary(self) -> tree.Expression:
        start = self.token.start
        if self.at("-", "!", "~", "&"):
            operator = cast(tree.UnaryOperator, self.take().text)
            operand = self.nested(self._unary)
            return tree.Unary(self.since(start), operator, operand)
        if self.skip("comptime"):
            value = self.nested(self._unary)
            return tree.Comptime(self.since(start), value)
        return self._postfix(self._primary(), start)

    def type(self) -> tree.Expression:
        """Return a type, behind which a ``{`` is no literal."""
        return self.nested(self._type)

    def _type(self) -> tree.Expression:
        start = self.token.start
        return self._postfix(self._primary(), start, literals=False)

    def _postfix(self, base: tree.Expression, start: int, literals: bool = True) -> tree.Expression:
        while True:
            if self.at("("):
                arguments = self.arguments()
                base = tree.Call(self.since(start), base, arguments)
            elif self.skip(".*"):
                base = tree.Dereference(self.since(start), base)
            elif self.at(".") and self.after(1).text != "{":
                self.take()
                name = self.field_name()
                base = tree.Field(self.since(start), base, name)
            elif self.skip("["):
                indices = self.listed("]")
                base = tree.Index(self.since(start), base, indices)
            elif literals and self.at("{") and isinstance(base, _MAY_BEGIN_A_LITERAL):
                base = self._literal(base, start)
            else:
                return base

    def field_name(self) -> str:
        """Return a name behind a dot, which may be a keyword."""
        if self.token.kind == "keyword":
            return self.take().text
        return self.name("the name of a field").text

    def arguments(self) -> tuple[tree.Expression, ...]:
        """Return what stands in parentheses, separated by commas."""
        self.expect("(")
        return self.listed(")")

    def listed(self, end: str) -> tuple[tree.Expression, ...]:
        """Return expressions up to a closing token, which is taken; a comma may stand before it."""
        found: list[tree.Expression] = []
        while not self.skip(end):
            found.append(self.expression())
            if not self.at(end):
                self.expect(",", f"`,` or `{end}`")
        return tuple(found)

    def _literal(self, type_: tree.Expression | None, start: int) -> tree.Expression:
        self.expect("{")
        if self.at(".") and self.after(1).kind in ("name", "keyword") and self.after(2).text == "=":
            fields = self._field_values()
            return tree.StructLiteral(self.since(start), type_, fields)
        elements = self.listed("}")
        if not elements and not isinstance(type_, tree.ArrayType):
            return tree.StructLiteral(self.since(start), type_, ())
        return tree.ListLiteral(self.since(start), type_, elements)

    def _field_values(self) -> tuple[tree.FieldValue, ...]:
        fields: list[tree.FieldValue] = []
        while not self.skip("}"):
            start = self.token.start
            self.expect(".", "`.name = value` or `}`")
            name = self.field_name()
            self.expect("=")
            value = self.expression()
            fields.append(tree.FieldValue(self.since(start), name, value))
            if not self.at("}"):
                self.expect(",", "`,` or `}`")
        return tuple(fields)

    def _primary(self) -> tree.Expression:
        token = self.token
        start = token.start
        if token.kind == "integer":
            self.take()
            return tree.Integer(self.since(start), self._integer(token))
        if token.kind == "float":
            self.take()
            return tree.Float(self.since(start), _float(token.text))
        if token.kind == "string":
            self.take()
            return tree.String(self.since(start), self._unescaped(token.text))
        if token.kind == "builtin":
            self.take()
            arguments = self.arguments()
            return tree.Builtin(self.since(start), token.text[1:], arguments)
        if token.kind == "name":
            if self.after(1).text == ":" and self.after(2).text == "{":
                return tree.BlockExpression(self.since(start), self.block())
            self.take()
            return tree.Name(self.since(start), token.text)
        return self._keyword_or_operator()

    def _keyword_or_operator(self) -> tree.Expression:
        start = self.token.start
        if self.at("true", "false"):
            value = self.take().text == "true"
            return tree.Boolean(self.since(start), value)
        if self.skip("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self.at("."):
            self.take()
            if self.at("{"):
                return self._literal(None, start)
            name = self.field_name()
            return tree.EnumLiteral(self.since(start), name)
        if self.at("{"):
            block = self.block()
            return tree.BlockExpression(self.since(start), block)
        if self.at("if"):
            return self._if_expression()
        if self.at("switch"):
            return self.switch()
        if self.at("|"):
            return self._tensor_access()
        return self._type_expression()

    def _if_expression(self) -> tree.Expression:
        start = self.take().start
        condition = self.parenthesised()
        then = self.expression()
        otherwise = self.expression() if self.skip("else") else None
        return tree.IfExpression(self.since(start), condition, then, otherwise)

    def parenthesised(self) -> tree.Expression:
        """Return the expression in parentheses that follows ``if``, ``while`` and the like."""
        self.expect("(")
        inner = self.expression()
        self.expect(")")
        return inner

    def switch(self) -> tree.Switch:
        """Return a ``switch``."""
        start = self.take().start
        subject = self.parenthesised()
        self.expect("{")
        prongs: list[tree.Prong] = []
        while not self.skip("}"):
            prongs.append(self._prong())
            if not self.at("}"):
                self.expect(",", "`,` or `}`")
        return tree.Switch(self.since(start), subject, tuple(prongs))

    def _prong(self) -> tree.Prong:
        start = self.token.start
        cases: tuple[tree.Expression, ...] = ()
        if self.skip("else"):
            self.expect("=>")
        else:
            cases = self.listed("=>")
        body = self.prong_body()
        return tree.Prong(self.since(start), cases, body)

    def _tensor_access(self) -> tree.Expression:
        start = self.take().start
        iterators: list[tree.Name] = []
        while not self.skip("|"):
            token = self.name("the name of an iterator")
            iterators.append(tree.Name(self.span_of(token), token.text))
            if not self.at("|"):
                self.expect(",", "`,` or `|`")
        self.expect("{", helps=["an access reads `|i, j|{ 4, n } -> A[i, j]`"])
        extents = self.listed("}")
        self.expect("->")
        target = self.expression()
        return tree.TensorAccess(self.since(start), tuple(iterators), extents, target)

    def _type_expression(self) -> tree.Expression:
        start = self.token.start
        if self.skip("["):
            if self.skip("*"):
                self.expect("]")
                return self._pointer(start, many=True)
            sizes = self.listed("]")
            element = self.type()
            return tree.ArrayType(self.since(start), sizes, element)
        if self.skip("*"):
            return self._pointer(start, many=False)
        if self.at("fn", "task"):
            return self._function_type()
        if self.at("packed", "extern", "struct", "union"):
            return self._struct_type()
        if self.at("enum"):
            return self._enum_type()
        if self.skip("anytype"):
            return tree.AnyType(self.since(start))
        return self.fail("an expression")

    def _pointer(self, start: int, many: bool) -> tree.Expression:
        is_const = self.skip("const")
        target = self.type()
        return tree.PointerType(self.since(start), target, is_const, many)

    def _function_type(self) -> tree.Expression:
        token = self.take()
        self.expect("(")
        parameters: list[tree.Expression] = []
        while not self.skip(")"):
            if self.token.kind == "name" and self.after(1).text == ":":
                self.position += 2
            parameters.append(self.type())
            if not self.at(")"):
                self.expect(",", "`,` or `)`")
        result = self.type()
        kind: Literal["fn", "task"] = "fn" if token.text == "fn" else "task"
        return tree.FunctionType(self.since(token.start), kind, tuple(parameters), result)

    def _struct_type(self) -> tree.Expression:
        start = self.token.start
        layout = self.take().text if self.at("packed", "extern") else ""
        if not self.at("struct", "union"):
            self.fail("`struct` or `union`")
        kind: Literal["struct", "union"] = "struct" if self.take().text == "struct" else "union"
        self.expect("{")
        members: list[tree.Member] = []
        while not self.skip("}"):
            member = self.token.start
            name = self.field_name()
            self.expect(":", helps=["a field is `name: type`"])
            type_ = self.type()
            value = self.expression() if self.skip("=") else None
            members.append(tree.Member(self.since(member), name, type_, value))
            if not self.at("}"):
                self.expect(",", "`,` or `}`")
        return tree.StructType(self.since(start), kind, layout, tuple(members))

    def _enum_type(self) -> tree.Expression:
        start = self.take().start
        tag = None
        if self.skip("("):
            tag = self.type()
            self.expect(")")
        self.expect("{")
        members: list[tree.Member] = []
        while not self.skip("}"):
            member = self.token.start
            name = self.field_name()
            value = self.expression() if self.skip("=") else None
            members.append(tree.Member(self.since(member), name, None, value))
            if not self.at("}"):
                self.expect(",", "`,` or `}`")
        return tree.EnumType(self.since(start), tag, tuple(members))

    def _integer(self, token: Token) -> int:
        digits = token.text.replace("_", "")
        if len(digits) > MOST_DIGITS:
            raise PolyloomError(
                error(
                    "csl-number",
                    f"a number of {len(digits)} digits",
                    self.span_of(token),
                    helps=[f"numbers have at most {MOST_DIGITS} digits"],
                )
            )
        try:
            return int(digits, 0) if digits[1:2].isalpha() else int(digits)
        except ValueError:
            raise PolyloomError(
                error(
                    "csl-number",
                    f"`{token.text}` is not a number",
                    self.span_of(token),
                    helps=["digits follow `0x`, `0b` and `0o`"],
                )
            ) from None

    def _unescaped(self, text: str) -> str:
        found: list[str] = []
        place = 1
        while place < len(text) - 1:
            character = text[place]
            place += 1
            if character == "\\":
                escape = text[place]
                digits = text[place + 1 : place + 3]
                if escape == "x" and len(digits) == 2 and all(d in "0123456789abcdefABCDEF" for d in digits):
                    character, place = chr(int(digits, 16)), place + 3
                elif escape in _ESCAPES:
                    character, place = _ESCAPES[escape], place + 1
                else:
                    raise PolyloomError(
                        error(
                            "csl-string",
                            f"`\\{escape}` is no escape of CSL",
                            self.since(self.tokens[self.position - 1].start),
                            helps=['escapes are `\\n`, `\\t`, `\\r`, `\\\\`, `\\"` and `\\x41`'],
                        )
                    )
            found.append(character)
        return "".join(found)


_MAY_BEGIN_A_LITERAL = (tree.Name, tree.Field, tree.ArrayType, tree.Call, tree.StructType, tree.Builtin)

MOST_DIGITS = 400


def _float(text: str) -> float:
    plain = text.replace("_", "")
    return float.fromhex(plain) if plain[:2] in ("0x", "0X") else float(plain)
