"""Checks of a draft's fields, for the rows of the rule table."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from waypost.domain.templates.buttons import Card
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Category
from waypost.domain.templates.types import TemplateType
from waypost.domain.templates.variables import (
    example_values,
    has_unclosed_variable,
    split_at_variables,
    variable_count,
    variable_names,
    word_count,
)


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """The failure of a check: its place in the field, and a detail."""

    place: str = ""  # inside the field, such as `[0].text`; empty: the field itself
    detail: str = ""  # about this draft, for the end of the error text; empty: none


RuleCheck = Callable[[TemplateDraft], RuleFailure | None]
"""Returns the failure, or None when the check passes."""


@dataclass(frozen=True, slots=True)
class DraftCondition:
    """A condition for the drafts that a rule applies to."""

    drafts: str  # names them, after `is for` in an error text
    holds: Callable[[TemplateDraft], bool]

    def __call__(self, draft: TemplateDraft) -> bool:
        """Return True for such a draft."""
        return self.holds(draft)


MAX_SEARCHED_CHARS: Final = 4096
"""Longer texts break the rules of length; to search a whole body of a request would hold up everybody else."""


def join_names(names: Sequence[str], last: str = "or") -> str:
    """Return names as an enumeration for a sentence: A, B or C."""
    *others, end = names
    return f"{', '.join(others)} {last} {end}" if others else end


def has_type(*types: TemplateType) -> DraftCondition:
    """Return a condition for drafts of these types."""
    return DraftCondition(f"templateType {join_names(types)}", lambda draft: draft.template_type in types)


def has_category(*categories: Category) -> DraftCondition:
    """Return a condition for drafts of these categories."""
    return DraftCondition(join_names(categories), lambda draft: draft.category in categories)


is_lto: Final = DraftCondition("LTO templates", lambda draft: draft.is_lto)
"""A condition for limited-time offers."""


def applies_when(condition: Callable[[TemplateDraft], bool], check: RuleCheck) -> RuleCheck:
    """Return a check that applies to these drafts only."""
    return lambda draft: check(draft) if condition(draft) else None


def applies_unless(condition: Callable[[TemplateDraft], bool], check: RuleCheck) -> RuleCheck:
    """Return a check that applies to all drafts but these."""
    return lambda draft: None if condition(draft) else check(draft)


def required(field: str) -> RuleCheck:
    """Return a check that the field is present, and neither empty nor blank."""
    return must_meet(lambda draft: not _is_absent(value := getattr(draft, field)) and has_text(value))


def has_visible_text(field: str) -> RuleCheck:
    """Return a check that the field, when present, has more than white space."""
    return must_meet(lambda draft: _is_absent(value := getattr(draft, field)) or has_text(value))


def has_text(value: Any) -> bool:
    """True unless the value is a text, or a tuple of texts, of white space only."""
    texts = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
    return any(not isinstance(text, str) or text.strip() for text in texts)


def forbidden(field: str) -> RuleCheck:
    """Return a check that the field is absent; empty and false count as absent."""
    return must_meet(lambda draft: _is_absent(getattr(draft, field), False))


def must_not_be(condition: Callable[[TemplateDraft], bool]) -> RuleCheck:
    """Return a check that fails for the drafts of a condition."""
    return lambda draft: RuleFailure() if condition(draft) else None


def must_meet(condition: Callable[[TemplateDraft], bool]) -> RuleCheck:
    """Return a check that passes for the drafts of a condition only."""
    return lambda draft: None if condition(draft) else RuleFailure()


@dataclass(frozen=True, slots=True)
class MaxLengthCheck:
    """A check of the maximum length of a field; the editor's counters read the maximum."""

    field: str
    max_chars: int

    def __call__(self, draft: TemplateDraft) -> RuleFailure | None:
        """Return the failure if the field is too long."""
        length = len(getattr(draft, self.field) or "")
        return None if length <= self.max_chars else RuleFailure(detail=f"it has {length}")


def max_length(field: str, max_chars: int) -> MaxLengthCheck:
    """Return a check that the field, when present, has at most so many characters."""
    return MaxLengthCheck(field, max_chars)


def allowed_values(field: str, values: tuple[str | None, ...]) -> RuleCheck:
    """Return a check that the field is one of the values."""
    return must_meet(lambda draft: getattr(draft, field) in values)


def number_range(field: str, low: int, high: int) -> RuleCheck:
    """Return a check that the field, when present, is a number from `low` to `high`."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        number: int | None = getattr(draft, field)
        return None if number is None or low <= number <= high else RuleFailure(detail=f"it is {number}")

    return check


# fmt: off
VALIDITY_RANGES_S: Final = {  # Source: facts 3.1, messageValidity; facts 15: the newer ranges
    Category.AUTHENTICATION.value: (30, 900),
    Category.UTILITY.value:        (30, 43_200),
    Category.MARKETING.value:      (43_200, 2_592_000),
}
# fmt: on


def has_allowed_validity(draft: TemplateDraft) -> RuleFailure | None:
    """Check that the validity is within the range of the category."""
    low, high = VALIDITY_RANGES_S.get(draft.category or "", (30, 2_592_000))
    if draft.message_validity_s is None or low <= draft.message_validity_s <= high:
        return None
    return RuleFailure(detail=f"{draft.category} takes {low} to {high}")


SECURITY_SENTENCE: Final = "For your security, do not share this code."
_CODE_LINE: Final = re.compile(
    r"(\{\{1\}\}|\*\{\{1\}\}\*) is your verification code\."
    rf"( ?{re.escape(SECURITY_SENTENCE)})?( ?This code expires in [0-9]{{1,3}} minutes?\.)?"
)


def starts_with_code_sentence(draft: TemplateDraft) -> RuleFailure | None:
    """Check that the first line of AUTHENTICATION is the operator's sentence, with or without asterisks.

    Further lines are ignored, so they must not contain other variables.
    """
    first = (draft.content or "").partition("\n")[0].strip()
    is_code = _CODE_LINE.fullmatch(first) and set(variable_names(draft.content)) == {"1"}
    return None if is_code else RuleFailure()


def has_sample(part: TemplateDraft | Card) -> bool:
    """True if there is a handle, a media id or a URL of the sample."""
    return any(sample and sample.strip() for sample in (part.example_media, part.media_id, part.media_url))


def has_closed_variables(field: str) -> RuleCheck:
    """Return a check that each variable has two braces on either side."""
    return must_meet(lambda draft: not has_unclosed_variable(getattr(draft, field) or ""))


_VARIABLE_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}", re.ASCII)  # Source: operator's facts 2.3, "Named variable"


def has_numbered_variables(field: str) -> RuleCheck:
    """Return a check that variables are {{1}}, {{2}} and so on, or, if NAMED, lower-case names."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        names = variable_names(getattr(draft, field))
        if draft.parameter_format == "NAMED":
            wrong = next((name for name in names if not _VARIABLE_NAME.fullmatch(name)), None)
            if wrong is not None:
                return RuleFailure(detail=f"{{{{{wrong}}}}} is not such a name")
            return None if len(set(names)) == len(names) else RuleFailure(detail="one is there twice")
        numbers = {int(name) for name in names if bool(re.fullmatch(r"[1-9][0-9]{0,3}", name, re.ASCII))}
        return None if numbers == set(range(1, len(set(names)) + 1)) else RuleFailure()

    return check


def keeps_variables_inside(field: str) -> RuleCheck:
    """Return a check that the text neither begins nor ends with a variable; a full stop after one is enough."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        pieces = split_at_variables((getattr(draft, field) or "").strip())
        return None if len(pieces) == 1 or (pieces[0] and pieces[-1]) else RuleFailure()

    return check


def keeps_variables_apart(field: str) -> RuleCheck:
    """Return a check that there is more than white space between two variables."""
    return must_meet(
        lambda draft: all(piece.strip() for piece in split_at_variables(getattr(draft, field) or "")[1:-1])
    )


def has_enough_text(draft: TemplateDraft) -> RuleFailure | None:
    """Check that there are at least 2n + 1 words in addition to n different variables."""
    text = draft.content or ""
    count = variable_count(text) if len(text) <= MAX_SEARCHED_CHARS else 0
    words = word_count(text) if count else 0
    if words > 2 * count or not count:
        return None
    return RuleFailure(detail=f"it has {words} words and needs {2 * count + 1}")


def example_matches(text_field: str, example_field: str) -> RuleCheck:
    """Return a check that the example is the text with each variable replaced by a value."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        text, example = getattr(draft, text_field) or "", getattr(draft, example_field) or ""
        if not variable_names(text) or example_values(text, example) is not None:
            return None
        return RuleFailure(detail="" if example else "it is missing")

    return check


def excludes_pattern(field: str, pattern: str) -> RuleCheck:
    """Return a check that nothing in the field matches a pattern."""
    regex = re.compile(pattern)
    return lambda draft: RuleFailure() if regex.search(getattr(draft, field) or "", 0, MAX_SEARCHED_CHARS) else None


def _is_absent(value: Any, *more: Any) -> bool:
    # By identity: 0 is a value, and equals false.
    return value in ("", ()) or any(value is absent for absent in (None, *more))
