"""Regular expressions of `pattern`, in the dialect of JavaScript, run with a bound on their steps.

A pattern comes from the author of a Flow, and could be catastrophic: matching never looks twice at one position of the
program and one of the text, so that its steps are at most their product.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

MAX_PROGRAM: Final = 2_000
MAX_STEPS: Final = 20_000
_MAX_DEPTH: Final = 50
_MAX_CODE_POINT: Final = 0x10FFFF
Ranges = list[tuple[int, int]]

_DIGITS: Final[Ranges] = [(48, 57)]
_LETTERS: Final[Ranges] = [(48, 57), (65, 90), (95, 95), (97, 122)]
_SPACES: Final[Ranges] = [(9, 13), (32, 32), (160, 160), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)]
_NEWLINES: Final[Ranges] = [(10, 10), (13, 13), (0x2028, 0x2029)]
_CLASSES: Final = {"d": _DIGITS, "w": _LETTERS, "s": [*_SPACES, (0x202F, 0x202F), (0x205F, 0x205F), (0xFEFF, 0xFEFF)]}
_CONTROLS: Final = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0}
_QUANTIFIER: Final = re.compile(r"\*|\+|\?|\{(\d{1,4})(,(\d{0,4}))?\}", re.ASCII)
_HEX: Final = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}")
_GROUP: Final = re.compile(r"\?(?::|<[A-Za-z_$][\w$]*>)")
_LOOKS: Final = {"?=": (False, True), "?!": (False, False), "?<=": (True, True), "?<!": (True, False)}
# Instructions: ("set", ranges), ("split", first, second), ("jump", to), ("start",), ("end",), ("edge", is_edge),
# ("look", program, is_behind, is_positive) and ("match",); the numbers are relative.
Instruction = tuple[Any, ...]


class UnreadablePatternError(ValueError):
    """A pattern has something that is not supported, or is too long."""


class TooManyStepsError(ValueError):
    """Matching takes too long."""


@lru_cache(maxsize=200)
def matches_pattern(pattern: str, text: str) -> bool:
    """Return True if a text matches a pattern as a whole, or if that cannot be found out.

    Not supported are references to groups and Unicode properties: such a pattern matches anything.
    """
    try:
        return _Matcher(text).matches(_compile(pattern), 0, len(text))
    except (UnreadablePatternError, TooManyStepsError):
        return True


@lru_cache(maxsize=100)
def _compile(pattern: str) -> list[Instruction]:
    parser = _PatternParser(pattern)
    program = parser.read_alternatives(0)
    if parser.at < len(pattern):
        raise UnreadablePatternError
    return _checked([*program, ("match",)])


def _checked(program: list[Instruction]) -> list[Instruction]:
    if len(program) > MAX_PROGRAM:
        raise UnreadablePatternError
    return program


@dataclass
class _PatternParser:
    """Reads a pattern from left to right; each method returns a program."""

    text: str
    at: int = 0

    def read_alternatives(self, depth: int) -> list[Instruction]:
        if depth > _MAX_DEPTH:
            raise UnreadablePatternError
        program = self._read_sequence(depth)
        while self._take("|"):
            other = self._read_sequence(depth)
            program = _checked([("split", 1, len(program) + 2), *program, ("jump", len(other) + 1), *other])
        return program

    def _read_sequence(self, depth: int) -> list[Instruction]:
        program: list[Instruction] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            atom = self._read_atom(depth)
            program = _checked(program + self._repeat(atom))
        return program

    def _take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def _repeat(self, atom: list[Instruction]) -> list[Instruction]:
        match = _QUANTIFIER.match(self.text, self.at)
        if match is None:
            return atom
        self.at = match.end()
        self._take("?")  # of what is lazy, only the order of the attempts differs
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(match[0], (None, None))
        if least is None:
            least = int(match[1])
            most = least if match[2] is None else int(match[3]) if match[3] else None
        if (least + (most or 0)) * len(atom) > MAX_PROGRAM:
            raise UnreadablePatternError
        program = atom * least
        if most is None:
            return [*program, ("split", 1, len(atom) + 2), *atom, ("jump", -len(atom) - 1)]
        for _ in range(most - least):
            program = [*program, ("split", 1, len(atom) + 1), *atom]
        return program

    def _read_atom(self, depth: int) -> list[Instruction]:
        character = self.text[self.at]
        self.at += 1
        match character:
            case "(":
                return self._read_group(depth)
            case "[":
                return [("set", self._read_class())]
            case "\\":
                return self._read_escape()
            case ".":
                return [("set", _invert(_NEWLINES))]
            case "^":
                return [("start",)]
            case "$":
                return [("end",)]
            case _:
                return [("set", [(ord(character), ord(character))])]

    def _read_group(self, depth: int) -> list[Instruction]:
        look = next((kind for kind in ("?<=", "?<!", "?=", "?!") if self._take(kind)), "")
        if not look and self.text.startswith("?", self.at):
            match = _GROUP.match(self.text, self.at)
            if match is None:
                raise UnreadablePatternError
            self.at = match.end()
        program = self.read_alternatives(depth + 1)
        if not self._take(")"):
            raise UnreadablePatternError
        return [("look", [*program, ("match",)], *_LOOKS[look])] if look else program

    def _read_escape(self) -> list[Instruction]:
        if self.text[self.at : self.at + 1] in {"b", "B"}:
            self.at += 1
            return [("edge", self.text[self.at - 1] == "b")]
        return [("set", self._read_escaped())]

    def _read_escaped(self) -> Ranges:
        """Return the characters of an escape, after its backslash."""
        character = self.text[self.at : self.at + 1]
        code = _HEX.match(self.text, self.at)
        if code is not None:
            self.at = code.end()
            number = min(int(code[1] or code[2] or code[3], 16), _MAX_CODE_POINT)
            return [(number, number)]
        self.at += 1
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return ranges if character.islower() else _invert(ranges)
        if character in _CONTROLS:
            return [(_CONTROLS[character], _CONTROLS[character])]
        if not character or character in "kpP" or character.isdigit():
            raise UnreadablePatternError
        return [(ord(character), ord(character))]

    def _read_class(self) -> Ranges:
        is_inverted = self._take("^")
        ranges: Ranges = []
        while not self._take("]"):
            first = self._read_member()
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in {"]", ""}:
                self.at += 1
                last = self._read_member()
                if len(first) == len(last) == 1 and first[0][0] <= last[0][1]:
                    ranges.append((first[0][0], last[0][1]))
                    continue
                ranges.append((45, 45))
                ranges.extend(last)
            ranges.extend(first)
        return _invert(ranges) if is_inverted else ranges

    def _read_member(self) -> Ranges:
        if self.at >= len(self.text):
            raise UnreadablePatternError
        character = self.text[self.at]
        self.at += 1
        if character != "\\":
            return [(ord(character), ord(character))]
        if self._take("b"):
            return [(8, 8)]
        return self._read_escaped()


def _invert(ranges: Iterable[tuple[int, int]]) -> Ranges:
    inverted: Ranges = []
    following = 0
    for first, last in sorted(ranges):
        if first > following:
            inverted.append((following, first - 1))
        following = max(following, last + 1)
    return [*inverted, (following, _MAX_CODE_POINT)] if following <= _MAX_CODE_POINT else inverted


@dataclass
class _Matcher:
    """Matches programs with one text."""

    text: str
    steps: int = 0
    looked: dict[tuple[int, int], bool] = field(default_factory=dict[tuple[int, int], bool])

    def matches(self, program: list[Instruction], start: int, end: int | None) -> bool:
        """Return True if a program matches from a start; to an end, if there is one."""
        waiting, visited = [(0, start)], {(0, start)}
        while waiting:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise TooManyStepsError
            counter, at = waiting.pop()
            kind, *operands = program[counter]
            if kind == "match":
                if end in (None, at):
                    return True
                continue
            following: list[tuple[int, int]] = []
            if kind == "set":
                if at < len(self.text) and _has(operands[0], ord(self.text[at])):
                    following.append((counter + 1, at + 1))
            elif kind in {"split", "jump"}:
                following.extend((counter + operand, at) for operand in reversed(operands))
            elif self._holds(kind, operands, at):
                following.append((counter + 1, at))
            for one in following:
                if one not in visited:
                    visited.add(one)
                    waiting.append(one)
        return False

    def _holds(self, kind: str, operands: list[Any], at: int) -> bool:
        """Return True if an instruction that takes no character holds at a position."""
        if kind == "start":
            return at == 0
        if kind == "end":
            return at == len(self.text)
        if kind == "edge":
            before, after = (
                0 <= place < len(self.text) and _has(_LETTERS, ord(self.text[place])) for place in (at - 1, at)
            )
            return (before != after) is operands[0]
        program, is_behind, is_positive = operands
        key = id(program), at
        if key not in self.looked:
            starts = range(at + 1) if is_behind else (at,)
            self.looked[key] = any(self.matches(program, start, at if is_behind else None) for start in starts)
        return self.looked[key] is is_positive


def _has(ranges: Ranges, code: int) -> bool:
    return any(first <= code <= last for first, last in ranges)
