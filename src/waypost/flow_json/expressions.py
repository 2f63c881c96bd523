"""Expressions of Flow JSON: references such as `${data.x}`, conditions, and nested expressions in backticks.

Source: public pages "Flow JSON", properties, and "Components", If; the words of errors are those of public pages "Error
codes" and "Validator of Flow JSON".
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
    """An expression is not valid; the text says why, with the column in the expression, from 0."""


# Source: public page "Validator of Flow JSON": a property that is no text begins with the first, a text is the second.
_BEGINS: Final = re.compile(r"\$\{(?:screen\.[a-zA-Z,_]*\.)?(?:data|form)(?:\.[\w-]+)+\}")
_BINDING: Final = re.compile(r"\$\{(?:screen\.[a-zA-Z,_]*\.)?(?:data|form)\..*\}")
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
_ARITHMETIC: Final = ("+", "-", "*", "/", "%")
MAX_CHARS: Final = 10_000
MAX_OPERATORS: Final = 100
_MAX_DEPTH: Final = 20


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
    if is_binding(text):
        raise ExpressionError("A reference and other text cannot be mixed.")
    return None


def is_reference(text: str) -> bool:
    """Return True if a text begins with a reference, as the operator reads a property that is no text."""
    return _BEGINS.match(text) is not None


def is_binding(text: str) -> bool:
    """Return True if a text begins and ends like a reference, as the operator reads a property that is a text."""
    return _BINDING.fullmatch(text) is not None


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
        raise ExpressionError("Expected property 'condition' to contain at least one operand.")
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"An expression has at most {MAX_CHARS} characters.")
    tokens = list(_tokens(text))
    if sum(token.kind == "operator" for token in tokens) > MAX_OPERATORS:
        raise ExpressionError(f"An expression has at most {MAX_OPERATORS} operators and parentheses.")
    parser = _Parser(tokens, may_join)
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


def expression_type(
    expression: Expression, type_of: Callable[[FieldReference], str], *, is_nested_one: bool = True
) -> str:
    """Return the JSON type of an expression's value; empty if it is not known.

    Args:
        type_of: the type of a field; empty if it is not known.
        is_nested_one: False for a condition without backticks.

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
            return "string"
        case Operation():
            types = [expression_type(one, type_of, is_nested_one=is_nested_one) for one in expression.operands]
            if is_nested_one:
                _check_nested(expression, types)
            else:
                _check_condition(expression, types)
            return "boolean" if _gives_boolean(expression) else "number"


def _gives_boolean(operation: Operation) -> bool:
    return operation.operator in {"!", *_LOGICAL, *_COMPARISONS}


def _literal_type(literal: Literal) -> str:
    if isinstance(literal.value, bool):
        return "boolean"
    return "string" if isinstance(literal.value, str) else "number"


def _check_nested(operation: Operation, types: list[str]) -> None:
    operator = operation.operator
    if operator in {"==", "!="}:
        if len({name for name in types if name}) > 1:
            raise ExpressionError(f"Operation '{operator}' can only be used to compare values with same type.")
    elif operator == "!" and types[0] not in {"", "boolean"}:
        raise ExpressionError("Operation '!' can only be used before booleans.")
    elif operator in _LOGICAL and any(name not in {"", "boolean"} for name in types):
        raise ExpressionError(f"Operation '{operator}' can only be used with booleans.")
    elif operator not in {"!", "%", *_LOGICAL} and any(name not in {"", "number"} for name in types):
        raise ExpressionError(f"Operation '{operator}' can only be used with numbers.")


def _check_condition(operation: Operation, types: list[str]) -> None:
    operator, column = operation.operator, operation.column
    left, right = operation.operands[0], operation.operands[-1]
    for operand, name in zip(operation.operands, types, strict=True):
        if name in {"array", "object"}:
            raise ExpressionError(f"Operand '{_text(operand)}' with type '{name}' is not supported.")
    if operator != "!" and isinstance(left, Literal) and isinstance(right, Literal):
        raise ExpressionError(
            f"An operator cannot not have literals on both sides. Found invalid syntax at column {column}."
        )
    if operator in {"==", "!="}:
        if "" not in types and types[0] != types[1]:
            raise ExpressionError(
                f"Type mismatch in an equality operation between '{_text(left)}' and '{_text(right)}' at column {column}."
            )
        return
    wanted = "number" if operator in _ORDERED else "boolean"
    if types[0] not in {"", wanted} and operator != "!":
        raise ExpressionError(
            f"Wrong positioning of operator '{operator}'. It cannot be used after '{_text(left)}' at column {column}."
        )
    if types[-1] not in {"", wanted}:
        raise ExpressionError(
            f"Wrong positioning of operand '{_text(right)}'. It cannot be used after '{operator}' at column {column}."
        )


def _text(operand: Expression) -> str:
    return operand.text if isinstance(operand, FieldReference | Literal) else "(...)"


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
        column = match.start(kind)
        if kind == "other":
            missing = "Missing closing quote for string." if match[kind] == "'" else None
            wrong = "Invalid operator" if match[kind] in "=&|" else "Unexpected character"
            raise ExpressionError(missing or f"{wrong} '{match[kind]}' at column {column}.")
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
                raise ExpressionError(
                    f"Missing operator between '{before.text}' and '{token.text}' at column {token.column}."
                )
            members.append(self._read_level(0, depth))
        return members[0] if len(members) == 1 else Concatenation(tuple(members))

    def _read_level(self, level: int, depth: int) -> Expression:
        if level == len(_PRECEDENCE):
            return self._read_operand(depth)
        left = self._read_level(level + 1, depth)
        while (token := self._peek()) is not None and token.kind == "operator" and token.text in _PRECEDENCE[level]:
            if token.text in _ARITHMETIC and not self._may_join:  # a condition without backticks only compares
                raise ExpressionError(f"Unexpected character '{token.text}' at column {token.column}.")
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
            case "word" if token.text == "null":
                raise ExpressionError("The keyword 'null' is reserved, please use another expression instead.")
            case "word":
                raise ExpressionError(f"Invalid operand format '{token.text}' at column {token.column}.")
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
                raise ExpressionError(
                    f"A numerical value is expected to follow the negative sign at column {token.column}."
                )
            self._at += 1
            return Literal(-float(number.text), f"-{number.text}")
        if token.text == ")":
            raise ExpressionError(f"Missing opening parenthesis for the closing parenthesis at column {token.column}.")
        raise ExpressionError(f"Invalid operator '{token.text}' at column {token.column}.")

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
