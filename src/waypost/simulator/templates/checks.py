"""Checks of a submitted template: a table of checks; the first violation is the error."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import list_or_none, objects_in, texts_in
from waypost.simulator.errors import template_refused
from waypost.simulator.media.references import Known
from waypost.simulator.templates.button_checks import check_buttons
from waypost.simulator.templates.drafts import Draft, read_draft
from waypost.simulator.templates.otp_checks import authentication_malformed
from waypost.simulator.templates.special_checks import SPECIAL, check_references, utility_malformed
from waypost.simulator.templates.texts import variables, without_variables

MEDIA_FORMATS: Final = ("IMAGE", "VIDEO", "DOCUMENT", "GIF")
HEADER_FORMATS: Final = ("TEXT", *MEDIA_FORMATS, "LOCATION", "PRODUCT")
_NAMED: Final = re.compile(r"[a-z_][a-z0-9_]*")
_EMOJI: Final = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff]")
_LEADING_OR_TRAILING: Final = re.compile(r"^\s*\{\{[^{}]*\}\}|\{\{[^{}]*\}\}\s*$")


@dataclass(frozen=True)
class Check:
    """One row: a check, the subcode of its error, and whether it applies only in strict mode."""

    subcode: int | None
    complaint: Callable[[Draft], str | None]
    strict: bool = False


def check_draft(
    fields: Mapping[str, Any], known: Known | None = None, *, any_language: bool = False, strict: bool = False
) -> Draft:
    """Read a submission and run every check.

    Args:
        fields: the submission.
        known: what it may refer to; None: uploads and flows are not checked.
        any_language: whether languages outside the operator's list are accepted.
        strict: whether to run the checks of strict mode too.

    Raises:
        GraphApiError: for an unreadable submission, or for the first violation.

    Source: facts 2.1 to 2.5.
    """
    draft = read_draft(fields, any_language=any_language)
    for check in CHECKS:
        violation = None if check.strict and not strict else check.complaint(draft)
        if violation:
            raise template_refused(check.subcode, violation)
    for part in (draft, *draft.cards()):
        check_buttons(part.parts.get("BUTTONS"))
    if known is not None:
        check_references(draft, known)
    return draft


def _body_missing(draft: Draft) -> str | None:
    return None if draft.text_of("BODY").strip() else "A component of type BODY with a text is required."


def _too_long(component: str, at_most: int) -> Callable[[Draft], str | None]:
    def find_violation(draft: Draft) -> str | None:
        limit = 600 if component == "BODY" and "LIMITED_TIME_OFFER" in draft.parts else at_most
        if len(draft.text_of(component)) > limit:
            return f"The text of the {component} component has at most {limit} characters."
        return None

    return find_violation


def _header_malformed(draft: Draft) -> str | None:
    header = draft.parts.get("HEADER")
    if header is None:
        return None
    if header["format"] not in HEADER_FORMATS:
        return f"The format of a header is one of {', '.join(HEADER_FORMATS)}."
    if header["format"] == "LOCATION" and draft.category == "AUTHENTICATION":
        return "A location header is for UTILITY and MARKETING templates."
    if header["format"] != "TEXT":
        return None
    text = draft.text_of("HEADER")
    if not text.strip():
        return "A text header has a text."
    if "\n" in text or "*" in text or "```" in text:
        return "The message header can't have any new lines, formatting characters or asterisks."
    if len(variables(text)) > 1:
        return "The message header can have one variable at most."
    return None


def _names_malformed(component: str) -> Callable[[Draft], str | None]:
    def find_violation(draft: Draft) -> str | None:
        if draft.parameter_format == "NAMED":
            wrong = [name for name in variables(draft.text_of(component)) if not _NAMED.fullmatch(name)]
            if wrong:
                return f"The variable {{{{{wrong[0]}}}}} is not made of lowercase letters and underscores."
        elif any(_NAMED.fullmatch(name) for name in variables(draft.text_of(component))):
            return "Named variables need the parameter_format NAMED."
        return None

    return find_violation


def _leading_or_trailing(draft: Draft) -> str | None:
    # The preset body of AUTHENTICATION begins with its variable. Reports differ on whether a full stop after
    # the last variable is enough (facts 2.4); here it is.
    if draft.category != "AUTHENTICATION" and _LEADING_OR_TRAILING.search(draft.text_of("BODY")):
        return "Variables can't be at the start or end of the template."
    return None


def _too_few_words(draft: Draft) -> str | None:
    text = draft.text_of("BODY")
    count = len(variables(text))
    if count and draft.category != "AUTHENTICATION" and len(without_variables(text).split()) < 2 * count + 1:
        return "This template has too many variables for its length. Reduce the number of variables or increase the message length."
    return None


def _footer_malformed(draft: Draft) -> str | None:
    footer = draft.parts.get("FOOTER")
    if footer is None:
        return None
    text = draft.text_of("FOOTER")
    if not text.strip():
        return "A footer has a text."
    if variables(text):
        return "The message footer can't have variables."
    if "\n" in text or _EMOJI.search(text):
        return "The message footer can't have any newlines or emojis."
    return None


def _header_example_missing(draft: Draft) -> str | None:
    header = draft.parts.get("HEADER")
    if header is None:
        return None
    example = draft.example_of("HEADER")
    if header["format"] in MEDIA_FORMATS:
        header_handle = example.get("header_handle")
        handles = texts_in(header_handle) or (
            [header_handle] if isinstance(header_handle, str) and header_handle else []
        )
        if not handles:
            return "A media header has an example: header_handle, from a resumable upload."
        if handles[0].startswith(("http://", "https://")):
            return "The header_handle is not an address: it comes from a resumable upload."
        return None
    names = variables(draft.text_of("HEADER"))
    return _lacking("HEADER", "header_text", names, example, draft.parameter_format)


def _body_example_missing(draft: Draft) -> str | None:
    names = variables(draft.text_of("BODY"))
    if draft.category == "AUTHENTICATION":
        return None
    return _lacking("BODY", "body_text", names, draft.example_of("BODY"), draft.parameter_format)


def _lacking(
    component: str, member: str, names: list[str], example: dict[str, Any], parameter_format: str
) -> str | None:
    if not names:
        return None
    if parameter_format == "NAMED":
        member += "_named_params"
        named_values = {
            str(value.get("param_name")) for value in objects_in(example.get(member)) if value.get("example")
        }
        is_complete = named_values >= set(names)
    else:
        is_complete = len(_values(example.get(member))) == len(names)
    if is_complete:
        return None
    return f"The {component} component needs example.{member} with a value for each of its {len(names)} variables."


def _values(given: Any) -> list[str]:
    """Return the example values; those of one variable may be a flat list or a string. Source: facts 2.2, notes."""
    if isinstance(given, str):
        return [given]
    outer = list_or_none(given) or []
    inner = list_or_none(outer[0]) if outer else None
    return [str(value) for value in (outer if inner is None else inner) if value not in (None, "")]


def _lifetime(draft: Draft) -> str | None:
    seconds = draft.message_send_ttl_seconds
    if seconds is None:
        return None
    low, high = TTL_SECONDS[draft.category]
    if low <= seconds <= high or (seconds == -1 and draft.category != "MARKETING"):
        return None
    return f"The message_send_ttl_seconds of a {draft.category} template is {low} to {high}."


def _in_cards(complaint: Callable[[Draft], str | None]) -> Callable[[Draft], str | None]:
    """Return the same check for every card of a carousel."""

    def find_card_violation(draft: Draft) -> str | None:
        for index, card in enumerate(draft.cards()):
            violation = complaint(card)
            if violation:
                return f"Card {index}: {violation}"
        return None

    return find_card_violation


# fmt: off
TTL_SECONDS: Final = {  # Source: facts 2.3, message_send_ttl_seconds
    "AUTHENTICATION": (30, 900),
    "UTILITY":        (30, 43_200),
    "MARKETING":      (43_200, 2_592_000),
}

CHECKS: Final = (  # Source: facts 2.3, 2.4; no subcode where none is documented
    #     subcode  violation
    Check(None,    _body_missing),
    Check(2388047, _header_malformed),
    Check(2388040, _too_long("HEADER", 60)),
    Check(2388040, _too_long("BODY", 1024)),
    Check(2388073, _footer_malformed),
    Check(2388040, _too_long("FOOTER", 60)),
    Check(2388047, _names_malformed("HEADER")),
    Check(2388072, _names_malformed("BODY")),
    Check(2388299, _leading_or_trailing),
    Check(2388293, _too_few_words),
    Check(None,    _header_example_missing),
    Check(None,    _body_example_missing),
    Check(None,    _lifetime),
    Check(None,    authentication_malformed),
    *(Check(None,  find_violation) for find_violation in SPECIAL),
    Check(None,    utility_malformed, strict=True),
    Check(2388040, _in_cards(_too_long("BODY", 160))),
    Check(2388072, _in_cards(_names_malformed("BODY"))),
    Check(None,    _in_cards(_header_example_missing)),
    Check(None,    _in_cards(_body_example_missing)),
)
# fmt: on
