"""The table of what each draft must satisfy; the first broken row answers."""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from waypost.domain.buttons import FIELDS, Button, ButtonKind
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template import Category, Draft, TemplateType
from waypost.domain.variables import example_values, variables

Must = Callable[[Draft], str | None]
"""Gives what is wrong and what would be accepted, or None when nothing is."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: the wire's name of the field, what it must be, and which reason answers.

    Attributes:
        operators: a rule of the operator's, not of the spec's: it refuses at creation only when
            the service is strict; otherwise the operator's review says so.
    """

    field: str
    must: Must
    source: str
    reason: Reason = Reason.FIELD_BROKEN
    operators: bool = False


def be_present(field: str, accepted: str) -> Must:
    """The field must be given and not be empty."""

    def must(draft: Draft) -> str | None:
        return None if getattr(draft, field) else f"is required: {accepted}"

    return must


def be_at_most(field: str, max_chars: int) -> Must:
    """The field, when given, has at most so many characters."""

    def must(draft: Draft) -> str | None:
        length = len(getattr(draft, field) or "")
        if length <= max_chars:
            return None
        return f"must be at most {max_chars} characters; it has {length}"

    return must


def be_one_of(field: str, values: tuple[str, ...], accepted: str) -> Must:
    """The field is one of the values."""

    def must(draft: Draft) -> str | None:
        return None if getattr(draft, field) in values else f"must be {accepted}"

    return must


def be_a_name(draft: Draft) -> str | None:
    """Lower-case letters, digits and underscores only."""
    if re.fullmatch(r"[a-z0-9_]+", draft.element_name or "", re.ASCII):
        return None
    return "must consist of lower-case letters, digits and underscores, such as order_update_2"


def number_variables_from_1(field: str) -> Must:
    """Variables are {{1}}, {{2}} and so on, without gaps and without anything else inside."""

    def must(draft: Draft) -> str | None:
        text: str = getattr(draft, field) or ""
        names = variables(text)
        if text.count("{{") != len(names) or text.count("}}") != len(names):
            return "has an unfinished variable; write {{1}}, {{2}} and so on"
        if sorted({int(name) for name in names if _is_plain_number(name)}) != list(
            range(1, len(set(names)) + 1)
        ):
            return "must number its variables {{1}}, {{2}} and so on without a gap"
        return None

    return must


def hold_at_most_one_variable(draft: Draft) -> str | None:
    """A header takes one variable."""
    if len(variables(draft.header)) > 1:
        return "must hold at most one variable, {{1}}"
    return None


def fit(text_field: str, example_field: str) -> Must:
    """The example is the text with each variable replaced by a value."""

    def must(draft: Draft) -> str | None:
        text, example = getattr(draft, text_field) or "", getattr(draft, example_field)
        if not variables(text):
            return None
        if not example:
            return (
                "is required because the text has variables: the text with each replaced by a value"
            )
        if example_values(text, example) is None:
            return "must be the text with each variable replaced by a value"
        return None

    return must


def have_known_buttons(draft: Draft) -> str | None:
    """Every button has the fields of its kind."""
    for at, button in enumerate(draft.buttons):
        for field in FIELDS[button.kind]:
            if not getattr(button, field):
                return f"[{at}].{field} is required for a {button.kind} button"
    return None


def have_labels_at_most(max_chars: int) -> Must:
    """Every button's label is short enough."""

    def must(draft: Draft) -> str | None:
        return _first(
            draft,
            lambda button: len(button.text) > max_chars,
            f"text must be at most {max_chars} characters",
        )

    return must


def have_at_most(max_count: int, kind: ButtonKind | None = None) -> Must:
    """No more than so many buttons, of one kind or in all."""

    def must(draft: Draft) -> str | None:
        count = sum(kind is None or button.kind is kind for button in draft.buttons)
        if count <= max_count:
            return None
        return (
            f"must hold at most {max_count} {f'{kind} ' if kind else ''}buttons; there are {count}"
        )

    return must


def group_quick_replies(draft: Draft) -> str | None:
    """Quick replies stand together, before or after all others."""
    quick = [button.kind is ButtonKind.QUICK_REPLY for button in draft.buttons]
    changes = sum(one != other for one, other in itertools.pairwise(quick))
    if changes > 1:
        return "must keep all QUICK_REPLY buttons together, before or after the others"
    return None


def have_usable_urls(draft: Draft) -> str | None:
    """A URL is absolute, at most 2,000 characters, with one variable at its very end at most."""
    return _first(
        draft,
        lambda button: button.kind is ButtonKind.URL and not _usable_url(button.url),
        "url must be an absolute http or https address of at most 2000 characters; "
        "one variable, {{1}}, may stand at its end",
    )


def have_url_examples(draft: Draft) -> str | None:
    """A URL with a variable has an example."""
    return _first(
        draft,
        lambda button: button.has_variable and not any(button.example),
        "example is required because the url has a variable: an array with one text",
    )


def have_usable_numbers(draft: Draft) -> str | None:
    """A number to call is at most 20 characters of digits, after an optional plus."""
    return _first(
        draft,
        lambda button: (
            button.kind is ButtonKind.PHONE_NUMBER
            and not re.fullmatch(r"\+?[0-9 ()-]{5,20}", button.phone_number, re.ASCII)
        ),
        "phone_number must be a phone number of at most 20 characters",
    )


_CATEGORIES = tuple(category.value for category in Category)
_ANY_CATEGORY = "AUTHENTICATION, MARKETING or UTILITY"
_TYPES = (TemplateType.TEXT.value,)
_ANY_TYPE = "TEXT, the one type that this version takes"
_TAKEN = (Category.MARKETING.value, Category.UTILITY.value)
_ANY_TAKEN = "MARKETING or UTILITY; this version takes no AUTHENTICATION templates"
_FILLED = "the body with each variable replaced by a value"

# fmt: off
RULES: Final = (  # Source: spec, "Create template" and "Limits"; facts 3.1, 3.3; operator 2.3, 2.4. The first broken row answers.
    #    field            must                                                    source                     reason or whose
    Rule("elementName",   be_present("element_name", "at most 180 characters"),   "spec, Create template"),
    Rule("category",      be_present("category", ", ".join(_CATEGORIES)),         "spec, Create template"),
    Rule("templateType",  be_present("template_type", "TEXT"),                    "spec, Create template"),
    Rule("vertical",      be_present("vertical", "at most 180 characters"),       "spec, Create template"),
    Rule("content",       be_present("content", "at most 1024 characters"),       "spec, Create template"),
    Rule("example",       be_present("example", _FILLED),                         "spec, Create template"),
    Rule("elementName",   be_at_most("element_name", 180),                        "spec, Limits"),
    Rule("elementName",   be_a_name,                                              "facts 3.3; operator 2.3", Reason.INVALID_ELEMENT_NAME),
    Rule("category",      be_one_of("category", _CATEGORIES, _ANY_CATEGORY),      "spec, Errors, rule 1",    Reason.INVALID_CATEGORY),
    Rule("templateType",  be_one_of("template_type", _TYPES, _ANY_TYPE),          "spec, Create template"),
    Rule("category",      be_one_of("category", _TAKEN, _ANY_TAKEN),              "spec, Create template"),
    Rule("vertical",      be_at_most("vertical", 180),                            "spec, Limits"),
    Rule("content",       be_at_most("content", 1024),                            "spec, Limits; decision 0004"),  # stated as 1028 once
    Rule("header",        be_at_most("header", 60),                               "spec, Limits"),
    Rule("footer",        be_at_most("footer", 60),                               "spec, Limits"),
    Rule("buttons",       have_known_buttons,                                     "spec, Button shapes"),
    Rule("buttons",       have_url_examples,                                      "spec, Button shapes"),
    Rule("content",       number_variables_from_1("content"),                     "operator 2.4",            operators=True),
    Rule("header",        number_variables_from_1("header"),                      "operator 2.4",            operators=True),
    Rule("header",        hold_at_most_one_variable,                              "operator 2.3",            operators=True),
    Rule("example",       fit("content", "example"),                              "operator 2.3; facts 3.1", operators=True),
    Rule("exampleHeader", fit("header", "example_header"),                        "operator 2.3; facts 3.1", operators=True),
    Rule("buttons",       have_at_most(10),                                       "operator 2.3",            operators=True),
    Rule("buttons",       have_at_most(2, ButtonKind.URL),                        "operator 2.3",            operators=True),
    Rule("buttons",       have_at_most(1, ButtonKind.PHONE_NUMBER),               "operator 2.3",            operators=True),
    Rule("buttons",       have_labels_at_most(25),                                "operator 2.3",            operators=True),
    Rule("buttons",       group_quick_replies,                                    "operator 2.3",            operators=True),
    Rule("buttons",       have_usable_urls,                                       "operator 2.3",            operators=True),
    Rule("buttons",       have_usable_numbers,                                    "operator 2.3",            operators=True),
)
# fmt: on


def check_draft(draft: Draft, *, strict: bool = False) -> None:
    """Return when the draft breaks no row.

    Args:
        draft: what was submitted.
        strict: hold the draft to the operator's rules too, instead of waiting for its review.

    Raises:
        Refused: for the first row it breaks, with field, rule and what would be accepted.
    """
    for rule in RULES:
        if rule.operators and not strict:
            continue
        wrong = rule.must(draft)
        if wrong is not None:
            joint = "" if wrong.startswith("[") else " "
            raise Refused(rule.reason, f"{rule.field}{joint}{wrong}.")


def _first(draft: Draft, is_wrong: Callable[[Button], bool], wrong: str) -> str | None:
    for at, button in enumerate(draft.buttons):
        if is_wrong(button):
            return f"[{at}].{wrong}"
    return None


def _is_plain_number(name: str) -> bool:
    return bool(re.fullmatch(r"[1-9][0-9]{0,3}", name, re.ASCII))


def _usable_url(url: str) -> bool:
    if len(url) > 2000 or not re.match(r"https?://[^\s/?#{}]+", url):
        return False
    if re.search(r"\s", url):
        return False
    plain = url.removesuffix("{{1}}")
    return "{{" not in plain and "}}" not in plain
