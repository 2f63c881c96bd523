"""What a draft's fields must be: the functions that the rows of the rule table are made of."""

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
    """Where a draft breaks a rule, and what stands there.

    Attributes:
        place: inside the field, such as `[0].text`; empty: the field itself.
        detail: of this draft, for the refusal's end; empty: there is nothing to add.
    """

    place: str = ""
    detail: str = ""


Must = Callable[[Draft], Wrong | None]
"""Gives what is wrong, or None when nothing is."""

If = Callable[[Draft], bool]
"""Which drafts a rule is about."""


def of_type(*types: TemplateType) -> If:
    """Drafts of these types."""
    return lambda draft: draft.template_type in types


def of_category(*categories: Category) -> If:
    """Drafts of these categories."""
    return lambda draft: draft.category in categories


def is_lto(draft: Draft) -> bool:
    """Limited-time offers."""
    return draft.is_lto


def when(is_about: If, must: Must) -> Must:
    """The rule for these drafts only."""
    return lambda draft: must(draft) if is_about(draft) else None


def unless(is_about: If, must: Must) -> Must:
    """The rule for all drafts but these."""
    return lambda draft: None if is_about(draft) else must(draft)


def be_given(field: str) -> Must:
    """The field must be there, and not be empty or blank."""

    def must(draft: Draft) -> Wrong | None:
        value = getattr(draft, field)
        return Wrong() if _is_absent(value) or not has_text(value) else None

    return must


def be_visible(field: str) -> Must:
    """The field, when given, has more than white space."""

    def must(draft: Draft) -> Wrong | None:
        value = getattr(draft, field)
        return None if _is_absent(value) or has_text(value) else Wrong()

    return must


def has_text(value: Any) -> bool:
    """True unless the value is a text, or texts, of white space only."""
    texts = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
    return any(not isinstance(one, str) or one.strip() for one in texts)


def be_absent(field: str) -> Must:
    """The field must not be there; empty or false is as good as absent."""
    return lambda draft: None if _is_absent(getattr(draft, field), False) else Wrong()


def be_false(is_so: If) -> Must:
    """None of these drafts may be."""
    return lambda draft: Wrong() if is_so(draft) else None


@dataclass(frozen=True, slots=True)
class AtMost:
    """A `Must` that says its number, for whoever counts to it."""

    field: str
    max_chars: int

    def __call__(self, draft: Draft) -> Wrong | None:
        """Count."""
        length = len(getattr(draft, self.field) or "")
        return None if length <= self.max_chars else Wrong(detail=f"it has {length}")


def be_at_most(field: str, max_chars: int) -> AtMost:
    """The field, when given, has at most so many characters."""
    return AtMost(field, max_chars)


def be_one_of(field: str, values: tuple[str | None, ...]) -> Must:
    """The field is one of the values."""
    return lambda draft: None if getattr(draft, field) in values else Wrong()


def be_within(field: str, low: int, high: int) -> Must:
    """The field, when given, is a number from `low` to `high`."""

    def must(draft: Draft) -> Wrong | None:
        number: int | None = getattr(draft, field)
        return None if number is None or low <= number <= high else Wrong(detail=f"it is {number}")

    return must


def be_a_name(draft: Draft) -> Wrong | None:
    """Lower-case letters, digits and underscores only."""
    is_name = re.fullmatch(r"[a-z0-9_]+", draft.element_name or "", re.ASCII)
    return None if is_name else Wrong()


def be_a_language(draft: Draft) -> Wrong | None:
    """A code of the table."""
    return None if draft.language_code in LANGUAGES else Wrong()


# fmt: off
VALIDITY_S: Final = {  # Source: facts 3.1, messageValidity; facts 15: the newer ranges
    Category.AUTHENTICATION.value: (30, 900),
    Category.UTILITY.value:        (30, 43_200),
    Category.MARKETING.value:      (43_200, 2_592_000),
}
# fmt: on


def live_as_long_as_its_category_may(draft: Draft) -> Wrong | None:
    """How long the operator may try to deliver."""
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
    """The first line of AUTHENTICATION is the operator's sentence, with or without asterisks.

    Further lines are read by nobody, so they must not ask for parameters.
    """
    first = (draft.content or "").partition("\n")[0].strip()
    is_code = _CODE_LINE.fullmatch(first) and set(variables(draft.content)) == {"1"}
    return None if is_code else Wrong()


def have_a_sample(draft: Draft) -> Wrong | None:
    """A handle, a media id or an address of the sample."""
    samples = (draft.example_media, draft.media_id, draft.media_url)
    return None if any(one and one.strip() for one in samples) else Wrong()


def finish_variables(field: str) -> Must:
    """Each variable has two braces on either side."""
    return lambda draft: Wrong() if has_unfinished(getattr(draft, field) or "") else None


def number_variables(field: str) -> Must:
    """Variables are {{1}}, {{2}} and so on; with names, each is one of lower-case letters."""

    def must(draft: Draft) -> Wrong | None:
        names = set(variables(getattr(draft, field)))
        if draft.parameter_format == "NAMED":
            wrong = sorted(name for name in names if not re.fullmatch(r"[a-z_]+", name, re.ASCII))
            return Wrong(detail=f"{{{{{wrong[0]}}}}} is no such name") if wrong else None
        numbers = {int(name) for name in names if _is_plain_number(name)}
        return None if numbers == set(range(1, len(names) + 1)) else Wrong()

    return must


def hold_at_most_one_variable(draft: Draft) -> Wrong | None:
    """A header takes one variable."""
    return Wrong() if len(variables(draft.header)) > 1 else None


def keep_variables_inside(field: str) -> Must:
    """No variable stands at the start or at the end; a full stop behind the last one is enough."""

    def must(draft: Draft) -> Wrong | None:
        pieces = without_variables((getattr(draft, field) or "").strip())
        return None if len(pieces) == 1 or (pieces[0] and pieces[-1]) else Wrong()

    return must


def keep_variables_apart(field: str) -> Must:
    """Between two variables stands more than space."""

    def must(draft: Draft) -> Wrong | None:
        between = without_variables(getattr(draft, field) or "")[1:-1]
        return None if all(piece.strip() for piece in between) else Wrong()

    return must


_WORD: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
"""A word; in scripts that write without spaces a letter counts as one."""


def have_words_enough(draft: Draft) -> Wrong | None:
    """At least 2n + 1 words beside n variables."""
    count = len(variables(draft.content))
    words = len(_WORD.findall(" ".join(without_variables(draft.content or ""))))
    if not count or words > 2 * count:
        return None
    return Wrong(detail=f"it has {words} words and needs {2 * count + 1}")


def fit(text_field: str, example_field: str) -> Must:
    """The example is the text with each variable replaced by a value."""

    def must(draft: Draft) -> Wrong | None:
        text, example = getattr(draft, text_field) or "", getattr(draft, example_field) or ""
        if not variables(text) or example_values(text, example) is not None:
            return None
        return Wrong(detail="" if example else "it is missing")

    return must


def be_free_of(field: str, pattern: str) -> Must:
    """Nothing in the field matches."""
    found = re.compile(pattern)
    return lambda draft: Wrong() if found.search(getattr(draft, field) or "") else None


def _is_absent(value: Any, *more: Any) -> bool:
    # By identity: 0 is a value, and equals false.
    return value in ("", ()) or any(value is one for one in (None, *more))


def _is_plain_number(name: str) -> bool:
    return bool(re.fullmatch(r"[1-9][0-9]{0,3}", name, re.ASCII))
