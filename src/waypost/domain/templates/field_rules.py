"""Checks of a draft's fields, for the rows of the rule table."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from waypost.domain.templates.fields import Draft
from waypost.domain.templates.languages import LANGUAGES
from waypost.domain.templates.template import Category
from waypost.domain.templates.types import TemplateType
from waypost.domain.templates.variables import example_values, has_unfinished, variables, without_variables


@dataclass(frozen=True, slots=True)
class Wrong:
    """The failure of a check: its place in the field, and a detail.

    Attributes:
        place: inside the field, such as `[0].text`; empty: the field itself.
        detail: about this draft, for the end of the error text; empty: none.
    """

    place: str = ""
    detail: str = ""


Must = Callable[[Draft], Wrong | None]
"""Returns the failure, or None when the check passes."""

If = Callable[[Draft], bool]
"""True for the drafts that a rule applies to."""


def of_type(*types: TemplateType) -> If:
    """Return a condition for drafts of these types."""
    return lambda draft: draft.template_type in types


def of_category(*categories: Category) -> If:
    """Return a condition for drafts of these categories."""
    return lambda draft: draft.category in categories


def is_lto(draft: Draft) -> bool:
    """True for limited-time offers."""
    return draft.is_lto


def when(is_about: If, must: Must) -> Must:
    """Return a check that applies to these drafts only."""
    return lambda draft: must(draft) if is_about(draft) else None


def unless(is_about: If, must: Must) -> Must:
    """Return a check that applies to all drafts but these."""
    return lambda draft: None if is_about(draft) else must(draft)


def be_given(field: str) -> Must:
    """Return a check that the field is present, and neither empty nor blank."""

    def check(draft: Draft) -> Wrong | None:
        value = getattr(draft, field)
        return Wrong() if _is_absent(value) or not has_text(value) else None

    return check


def be_visible(field: str) -> Must:
    """Return a check that the field, when present, has more than white space."""

    def check(draft: Draft) -> Wrong | None:
        value = getattr(draft, field)
        return None if _is_absent(value) or has_text(value) else Wrong()

    return check


def has_text(value: Any) -> bool:
    """True unless the value is a text, or a tuple of texts, of white space only."""
    texts = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
    return any(not isinstance(text, str) or text.strip() for text in texts)


def be_absent(field: str) -> Must:
    """Return a check that the field is absent; empty and false count as absent."""
    return lambda draft: None if _is_absent(getattr(draft, field), False) else Wrong()


def be_false(is_so: If) -> Must:
    """Return a check that fails for the drafts of a condition."""
    return lambda draft: Wrong() if is_so(draft) else None


@dataclass(frozen=True, slots=True)
class AtMost:
    """A check of the maximum length of a field; the editor's counters read the maximum."""

    field: str
    max_chars: int

    def __call__(self, draft: Draft) -> Wrong | None:
        """Return the failure if the field is too long."""
        length = len(getattr(draft, self.field) or "")
        return None if length <= self.max_chars else Wrong(detail=f"it has {length}")


def be_at_most(field: str, max_chars: int) -> AtMost:
    """Return a check that the field, when present, has at most so many characters."""
    return AtMost(field, max_chars)


def be_one_of(field: str, values: tuple[str | None, ...]) -> Must:
    """Return a check that the field is one of the values."""
    return lambda draft: None if getattr(draft, field) in values else Wrong()


def be_within(field: str, low: int, high: int) -> Must:
    """Return a check that the field, when present, is a number from `low` to `high`."""

    def check(draft: Draft) -> Wrong | None:
        number: int | None = getattr(draft, field)
        return None if number is None or low <= number <= high else Wrong(detail=f"it is {number}")

    return check


def be_a_name(draft: Draft) -> Wrong | None:
    """Check that the name has only lower-case letters, digits and underscores."""
    is_name = re.fullmatch(r"[a-z0-9_]+", draft.element_name or "", re.ASCII)
    return None if is_name else Wrong()


def be_a_language(draft: Draft) -> Wrong | None:
    """Check that the language is a code of the table."""
    return None if draft.language_code in LANGUAGES else Wrong()


# fmt: off
VALIDITY_S: Final = {  # Source: facts 3.1, messageValidity; facts 15: the newer ranges
    Category.AUTHENTICATION.value: (30, 900),
    Category.UTILITY.value:        (30, 43_200),
    Category.MARKETING.value:      (43_200, 2_592_000),
}
# fmt: on


def live_as_long_as_its_category_may(draft: Draft) -> Wrong | None:
    """Check that the validity is within the range of the category."""
    low, high = VALIDITY_S.get(draft.category or "", (30, 2_592_000))
    if draft.message_validity_s is None or low <= draft.message_validity_s <= high:
        return None
    return Wrong(detail=f"{draft.category} takes {low} to {high}")


SECURITY: Final = "For your security, do not share this code."
_CODE_LINE: Final = re.compile(
    r"(\{\{1\}\}|\*\{\{1\}\}\*) is your verification code\."
    rf"( ?{re.escape(SECURITY)})?( ?This code expires in [0-9]{{1,3}} minutes?\.)?"
)


def begin_with_the_code(draft: Draft) -> Wrong | None:
    """Check that the first line of AUTHENTICATION is the operator's sentence, with or without asterisks.

    Further lines are ignored, so they must not contain other variables.
    """
    first = (draft.content or "").partition("\n")[0].strip()
    is_code = _CODE_LINE.fullmatch(first) and set(variables(draft.content)) == {"1"}
    return None if is_code else Wrong()


def have_a_sample(draft: Draft) -> Wrong | None:
    """Check that there is a handle, a media id or a URL of the sample."""
    samples = (draft.example_media, draft.media_id, draft.media_url)
    return None if any(sample and sample.strip() for sample in samples) else Wrong()


def finish_variables(field: str) -> Must:
    """Return a check that each variable has two braces on either side."""
    return lambda draft: Wrong() if has_unfinished(getattr(draft, field) or "") else None


def number_variables(field: str) -> Must:
    """Return a check that variables are {{1}}, {{2}} and so on, or, if NAMED, lower-case names."""

    def check(draft: Draft) -> Wrong | None:
        names = set(variables(getattr(draft, field)))
        if draft.parameter_format == "NAMED":
            wrong = sorted(name for name in names if not re.fullmatch(r"[a-z_]+", name, re.ASCII))
            return Wrong(detail=f"{{{{{wrong[0]}}}}} is no such name") if wrong else None
        numbers = {int(name) for name in names if _is_plain_number(name)}
        return None if numbers == set(range(1, len(names) + 1)) else Wrong()

    return check


def hold_at_most_one_variable(draft: Draft) -> Wrong | None:
    """Check that the header has at most one variable."""
    return Wrong() if len(variables(draft.header)) > 1 else None


def keep_variables_inside(field: str) -> Must:
    """Return a check that the text neither begins nor ends with a variable; a full stop after one is enough."""

    def check(draft: Draft) -> Wrong | None:
        pieces = without_variables((getattr(draft, field) or "").strip())
        return None if len(pieces) == 1 or (pieces[0] and pieces[-1]) else Wrong()

    return check


def keep_variables_apart(field: str) -> Must:
    """Return a check that there is more than white space between two variables."""

    def check(draft: Draft) -> Wrong | None:
        between = without_variables(getattr(draft, field) or "")[1:-1]
        return None if all(piece.strip() for piece in between) else Wrong()

    return check


_WORD: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
"""A word; in scripts without spaces each letter counts as one."""


def have_words_enough(draft: Draft) -> Wrong | None:
    """Check that there are at least 2n + 1 words beside n variables."""
    count = len(variables(draft.content))
    matches = len(_WORD.findall(" ".join(without_variables(draft.content or ""))))
    if not count or matches > 2 * count:
        return None
    return Wrong(detail=f"it has {matches} words and needs {2 * count + 1}")


def fit(text_field: str, example_field: str) -> Must:
    """Return a check that the example is the text with each variable replaced by a value."""

    def check(draft: Draft) -> Wrong | None:
        text, example = getattr(draft, text_field) or "", getattr(draft, example_field) or ""
        if not variables(text) or example_values(text, example) is not None:
            return None
        return Wrong(detail="" if example else "it is missing")

    return check


def be_free_of(field: str, pattern: str) -> Must:
    """Return a check that nothing in the field matches a pattern."""
    regex = re.compile(pattern)
    return lambda draft: Wrong() if regex.search(getattr(draft, field) or "") else None


def _is_absent(value: Any, *more: Any) -> bool:
    # By identity: 0 is a value, and equals false.
    return value in ("", ()) or any(value is absent for absent in (None, *more))


def _is_plain_number(name: str) -> bool:
    return bool(re.fullmatch(r"[1-9][0-9]{0,3}", name, re.ASCII))
