"""Expressions of Flow JSON: references such as `${data.x}`, conditions, and nested expressions in backticks.

Source: the operator's pages "Flow JSON", properties, and "Components", If; the words of errors are those of its page
"Error codes".
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True)
class FieldReference:
    """A reference to a field.

    Attributes:
        scope: `data` or `form`.
        screen: whose field; None: this screen's.
        names: the field, and the members within it.
        text: as it is written, with `${` and `}`.
    """

    scope: str
    screen: str | None
    names: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Literal:
    """A text, a number or a boolean."""

    value: str | float | bool
    text: str


@dataclass(frozen=True)
class Operation:
    """An operator with one operand or two; `is_enclosed` if it stands in parentheses."""

    operator: str
    operands: tuple["Expression", ...]
    column: int
    is_enclosed: bool = False


@dataclass(frozen=True)
class Concatenation:
    """Members side by side, which make one text."""

    members: tuple["Expression", ...]


Expression: TypeAlias = FieldReference | Literal | Operation | Concatenation


class ExpressionError(ValueError):
    """An expression is not valid; the text says why, with the column in the expression, from 1."""


_REFERENCE: Final = re.compile(r"\$\{([^{}]*)\}")
_NAME: Final = r"[^.\s{}$`]+"
_PATH: Final = re.compile(rf"(?:screen\.(?P<screen>{_NAME})\.)?(?P<scope>data|form)\.(?P<names>{_NAME}(?:\.{_NAME})*)")
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<reference>\$\{[^{}]*\})|(?P<text>'(?:[^'\\]|\\.)*')|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<word>[A-Za-z_][\w.]*)|(?P<operator>==|!=|<=|>=|&&|\|\||[<>!+\-*/%()])|(?P<other>\S))"
)
_ESCAPED: Final = re.compile(r"\\(.)")
# Lower rows bind stronger.
_PRECEDENCE: Final = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_LOGICAL: Final = ("||", "&&")
_ORDERED: Final = ("<", "<=", ">", ">=")
_COMPARISONS: Final = ("==", "!=", *_ORDERED)
MAX_CHARS: Final = 10_000
_MAX_DEPTH: Final = 50


def read_expression(text: str) -> Expression | None:
    """Return the expression that a property's text is; None if it is a plain text.

    Raises:
        ExpressionError: it is neither.
    """
    whole = _REFERENCE.fullmatch(text)
    if whole is not None:
        return _read_reference(text)
    if is_nested(text):
        return parse_expression(text[1:-1], may_join=True)
    if _REFERENCE.search(text) is not None:
        raise ExpressionError("A reference and other text cannot be mixed; a nested expression stands in backticks.")
    return None


def is_nested(text: str) -> bool:
    """Return True for a nested expression: a text in backticks."""
    return len(text) > 1 and text[0] == text[-1] == "`"


def parse_expression(text: str, *, may_join: bool = False) -> Expression:
    """Return the expression of a text, such as the condition of an If.

    Args:
        may_join: True if members may stand side by side.

    Raises:
        ExpressionError: it is not valid.
    """
    if not text.strip():
        raise ExpressionError("Expected property to contain at least one operand.")
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"An expression has at most {MAX_CHARS} characters.")
    parser = _Parser(list(_tokens(text)), may_join)
    expression = parser.read_joined(0)
    parser.expect_end()
    return expression


def references(expression: Expression) -> Iterator[FieldReference]:
    """Yield each reference of an expression."""
    match expression:
        case FieldReference():
            yield expression
        case Operation():
            for operand in expression.operands:
                yield from references(operand)
        case Concatenation():
            for member in expression.members:
                yield from references(member)
        case Literal():
            pass


def expression_type(expression: Expression, type_of: Callable[[FieldReference], str]) -> str:
    """Return the JSON type of an expression's value; empty if it is not known.

    Args:
        type_of: the type of a field; empty if it is not known.

    Raises:
        ExpressionError: an operator has operands of the wrong type, or only literals.
    """
    match expression:
        case FieldReference():
            return type_of(expression)
        case Literal():
            return _literal_type(expression)
        case Concatenation():
            for member in expression.members:
                expression_type(member, type_of)
                if isinstance(member, Operation) and not member.is_enclosed and _gives_boolean(member):
                    raise ExpressionError(
                        f"Wrong positioning of operator '{member.operator}'. It cannot be used in concatenation."
                    )
            return "string"
        case Operation():
            types = [expression_type(operand, type_of) for operand in expression.operands]
            _check_operands(expression, types)
            return "boolean" if _gives_boolean(expression) else "number"


def _gives_boolean(operation: Operation) -> bool:
    return operation.operator in {"!", *_LOGICAL, *_COMPARISONS}


def _literal_type(literal: Literal) -> str:
    if isinstance(literal.value, bool):
        return "boolean"
    return "string" if isinstance(literal.value, str) else "number"


def _check_operands(operation: Operation, types: list[str]) -> None:
    operator, column = operation.operator, operation.column
    if operator in {"!", *_LOGICAL}:
        wanted = "boolean"
    elif operator in {"==", "!="}:
        known = {name for name in types if name}
        if len(known) > 1 or known & {"array", "object"}:
            raise ExpressionError(f"Type mismatch in an equality operation at column {column}.")
        wanted = ""
    else:
        wanted = "number"
    if wanted and any(name not in {"", wanted} for name in types):
        raise ExpressionError(f"Operator '{operator}' at column {column} takes operands of type {wanted}.")
    is_compared = operator in {*_LOGICAL, *_COMPARISONS}
    if is_compared and all(isinstance(operand, Literal) for operand in operation.operands):
        raise ExpressionError(
            f"An operator cannot not have literals on both sides. Found invalid syntax at column {column}."
        )


def _read_reference(text: str) -> FieldReference:
    path = _PATH.fullmatch(text[2:-1])
    if path is None:
        raise ExpressionError(
            f"Invalid operand format '{text}': write ${{data.name}}, ${{form.name}} or ${{screen.ID.data.name}}."
        )
    return FieldReference(path["scope"], path["screen"], tuple(path["names"].split(".")), text)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while (match := _TOKEN.match(text, at)) is not None:
        kind = match.lastgroup or ""
        column = match.start(kind) + 1
        if kind == "other":
            missing = "Missing closing quote for string." if match[kind] == "'" else None
            wrong = "Invalid operator" if match[kind] in "=&|" else "Unexpected character"
            raise ExpressionError(missing or f"{wrong} '{match[kind]}' found at column {column}.")
        yield _Token(kind, match[kind], column)
        at = match.end()


class _Parser:
    """Reads tokens from left to right."""

    def __init__(self, tokens: list[_Token], may_join: bool) -> None:
        self._tokens = tokens
        self._may_join = may_join
        self._at = 0

    def expect_end(self) -> None:
        token = self._peek()
        if token is not None and token.text == ")":
            raise ExpressionError(f"Missing opening parenthesis for the closing parenthesis at column {token.column}.")

    def read_joined(self, depth: int) -> Expression:
        members = [self._read_level(0, depth)]
        while (token := self._peek()) is not None and token.text != ")":
            if not self._may_join:
                before = self._tokens[self._at - 1]
                raise ExpressionError(f"Missing operator between '{before.text}' and '{token.text}'.")
            members.append(self._read_level(0, depth))
        return members[0] if len(members) == 1 else Concatenation(tuple(members))

    def _read_level(self, level: int, depth: int) -> Expression:
        if level == len(_PRECEDENCE):
            return self._read_operand(depth)
        left = self._read_level(level + 1, depth)
        while (token := self._peek()) is not None and token.kind == "operator" and token.text in _PRECEDENCE[level]:
            self._at += 1
            left = Operation(token.text, (left, self._read_level(level + 1, depth)), token.column)
        return left

    def _read_operand(self, depth: int) -> Expression:
        token = self._peek()
        if token is None:
            last = self._tokens[-1]
            raise ExpressionError(f"Missing operand after last operator '{last.text}'.")
        if depth > _MAX_DEPTH:
            raise ExpressionError(f"An expression has at most {_MAX_DEPTH} parentheses within one another.")
        self._at += 1
        match token.kind:
            case "reference":
                return _read_reference(token.text)
            case "text":
                return Literal(_ESCAPED.sub(r"\1", token.text[1:-1]), token.text)
            case "number":
                return Literal(float(token.text) if "." in token.text else int(token.text), token.text)
            case "word" if token.text in {"true", "false"}:
                return Literal(token.text == "true", token.text)
            case "word":
                raise ExpressionError(f"Invalid operand format '{token.text}' found at column {token.column}.")
            case _:
                return self._read_prefixed(token, depth)

    def _read_prefixed(self, token: _Token, depth: int) -> Expression:
        if token.text == "(":
            return self._read_enclosed(token, depth)
        if token.text == "!":
            return Operation("!", (self._read_operand(depth + 1),), token.column)
        if token.text == "-":
            number = self._peek()
            if number is None or number.kind != "number":
                raise ExpressionError("A numerical value is expected to follow the negative sign.")
            self._at += 1
            return Literal(-float(number.text), f"-{number.text}")
        if token.text == ")":
            raise ExpressionError(f"Missing opening parenthesis for the closing parenthesis at column {token.column}.")
        raise ExpressionError(f"Invalid operator '{token.text}' found at column {token.column}.")

    def _read_enclosed(self, opening: _Token, depth: int) -> Expression:
        following = self._peek()
        if following is not None and following.text == ")":
            raise ExpressionError(f"Found invalid empty parentheses at column {opening.column}.")
        inner = self.read_joined(depth + 1)
        if self._peek() is None:
            raise ExpressionError("Missing closing parenthesis.")
        self._at += 1
        if isinstance(inner, Operation):
            return Operation(inner.operator, inner.operands, inner.column, is_enclosed=True)
        return inner

    def _peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None
