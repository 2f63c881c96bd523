"""Checks of a submitted template: a table of checks; the first violation is the error."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from waypost.base.json_values import list_of, list_or_none, objects_in, texts_in
from waypost.simulator.apis.errors import template_error
from waypost.simulator.media.references import KnownReferences
from waypost.simulator.templates.button_checks import authentication_malformed, check_buttons
from waypost.simulator.templates.drafts import read_draft
from waypost.simulator.templates.special_checks import (
    carousel_malformed,
    catalog_malformed,
    check_references,
    flow_malformed,
    offer_malformed,
    utility_malformed,
)
from waypost.simulator.templates.template import SimulatedTemplate
from waypost.simulator.templates.text_variables import (
    VARIABLE,
    count_words,
    has_breaks,
    has_emoji,
    has_markup,
    variables,
)

MEDIA_FORMATS: Final = ("IMAGE", "VIDEO", "DOCUMENT", "GIF")
HEADER_FORMATS: Final = ("TEXT", *MEDIA_FORMATS, "LOCATION", "PRODUCT")
_VARIABLE_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")  # Source: facts 2.3, "Named variable"
_LEADING_OR_TRAILING: Final = re.compile(r"^\s*\{\{[^{}]*\}\}|\{\{[^{}]*\}\}\s*$")


DraftCheck = Callable[[SimulatedTemplate], str | None]
"""Returns the violation of a submission; None if there is none."""


def check_draft(
    fields: Mapping[str, Any],
    references: KnownReferences | None = None,
    *,
    any_language: bool = False,
    strict: bool = False,
) -> SimulatedTemplate:
    """Read a submission and run every check.

    Args:
        any_language: whether languages outside the operator's list are accepted.
        strict: whether to run the checks of strict mode too.

    Raises:
        GraphApiError: for an unreadable submission, or for the first violation.

    Source: facts 2.1 to 2.5.
    """
    draft = read_draft(fields, any_language=any_language)
    for subcode, find_violation in DRAFT_CHECKS:
        if violation := None if find_violation is utility_malformed and not strict else find_violation(draft):
            raise template_error(subcode, violation)
    for part in (draft, *draft.cards):
        check_buttons(part.components_by_type.get("BUTTONS"))
    if references is not None:
        check_references(draft, references)
    return draft


def _body_missing(draft: SimulatedTemplate) -> str | None:
    return None if draft.text("BODY").strip() else "A component of type BODY with a text is required."


def _check_length(component: str, max_chars: int) -> DraftCheck:
    def find_violation(draft: SimulatedTemplate) -> str | None:
        limit = 600 if component == "BODY" and "LIMITED_TIME_OFFER" in draft.components_by_type else max_chars
        if len(draft.text(component)) > limit:
            return f"The text of the {component} component has at most {limit} characters."
        return None

    return find_violation


def _header_malformed(draft: SimulatedTemplate) -> str | None:
    header = draft.components_by_type.get("HEADER")
    if header is None:
        return None
    if header["format"] not in HEADER_FORMATS:
        return f"The format of a header is one of {', '.join(HEADER_FORMATS)}."
    if header["format"] == "LOCATION" and draft.category == "AUTHENTICATION":
        return "A location header is for UTILITY and MARKETING templates."
    if header["format"] == "GIF" and draft.category != "MARKETING":  # Source: facts 2.2
        return "A GIF header is for MARKETING templates."
    if header["format"] != "TEXT":
        return None
    text = draft.text("HEADER")
    if not text.strip():
        return "A text header has a text."
    if has_breaks(text) or has_emoji(text) or has_markup(text) or "*" in text:
        return "The message header can't have any new lines, formatting characters, emojis or asterisks."
    if len(VARIABLE.findall(text)) > 1:
        return "The message header can have one variable at most."
    return None


def _check_variable_names(component: str) -> DraftCheck:
    def find_violation(draft: SimulatedTemplate) -> str | None:
        if draft.parameter_format == "NAMED":
            names = VARIABLE.findall(draft.text(component))
            wrong = [name for name in names if not _VARIABLE_NAME.fullmatch(name)]
            if wrong:
                return (
                    f"The variable {{{{{wrong[0]}}}}} is not made of at most 32 lowercase letters, digits and "
                    "underscores."
                )
            if len(set(names)) < len(names):
                return "This template contains duplicate variable parameters."
        elif any(_VARIABLE_NAME.fullmatch(name) for name in variables(draft.text(component))):
            return "Named variables need the parameter_format NAMED."
        return None

    return find_violation


def _leading_or_trailing(draft: SimulatedTemplate) -> str | None:
    # The preset body of AUTHENTICATION begins with its variable. Reports differ on whether a full stop after
    # the last variable is enough (facts 2.4); here it is.
    if draft.category != "AUTHENTICATION" and _LEADING_OR_TRAILING.search(draft.text("BODY")):
        return "Variables can't be at the start or end of the template."
    return None


def _too_little_text(draft: SimulatedTemplate) -> str | None:
    text = draft.text("BODY")
    count = len(variables(text))
    if count and draft.category != "AUTHENTICATION" and count_words(text) < 2 * count + 1:
        return (
            "This template has too many variables for its length. Reduce the number of variables or increase the "
            "message length."
        )
    return None


def _footer_malformed(draft: SimulatedTemplate) -> str | None:
    footer = draft.components_by_type.get("FOOTER")
    if footer is None:
        return None
    text = draft.text("FOOTER")
    if not text.strip():
        return "A footer has a text."
    if "{{" in text or "}}" in text:
        return "The message footer can't have variables."
    if has_breaks(text) or has_emoji(text):
        return "The message footer can't have any newlines or emojis."
    return None


def _header_example_missing(draft: SimulatedTemplate) -> str | None:
    if draft.header_format not in MEDIA_FORMATS:
        return _example_violation(draft, "HEADER", "header_text")
    header_handle = draft.example("HEADER").get("header_handle")
    handles = [header_handle] if isinstance(header_handle, str) and header_handle else texts_in(header_handle)
    if not handles:
        return "A media header has an example: header_handle, from a resumable upload."
    if handles[0].startswith(("http://", "https://")):
        return "The header_handle is not an address: it comes from a resumable upload."
    return None


def _body_example_missing(draft: SimulatedTemplate) -> str | None:
    return None if draft.category == "AUTHENTICATION" else _example_violation(draft, "BODY", "body_text")


def _example_violation(draft: SimulatedTemplate, component: str, member: str) -> str | None:
    """Return the violation of an example: those of one variable may be a flat list or a string.

    Source: facts 2.2, notes.
    """
    names = variables(draft.text(component))
    if draft.parameter_format == "NAMED":
        member += "_named_params"
        values = objects_in(draft.example(component).get(member))
        is_complete = {str(value.get("param_name")) for value in values if value.get("example")} >= set(names)
    else:
        example = draft.example(component).get(member)
        outer = [example] if isinstance(example, str) else list_of(example)
        inner = list_or_none(outer[0]) if outer else None
        given = [
            value
            for value in (outer if inner is None else inner)
            if isinstance(example, str) or value not in (None, "")
        ]
        is_complete = not names or len(given) == len(names)
    if is_complete:
        return None
    return f"The {component} component needs example.{member} with a value for each of its {len(names)} variables."


def _lifetime_malformed(draft: SimulatedTemplate) -> str | None:
    seconds = draft.message_send_ttl_seconds
    if seconds is None:
        return None
    low, high = TTL_SECONDS[draft.category]
    if low <= seconds <= high or (seconds == -1 and draft.category != "MARKETING"):
        return None
    return f"The message_send_ttl_seconds of a {draft.category} template is {low} to {high}."


def _check_cards(find_violation: DraftCheck) -> DraftCheck:
    """Return the same check for every card of a carousel."""

    def find_card_violation(draft: SimulatedTemplate) -> str | None:
        for index, card in enumerate(draft.cards):
            violation = find_violation(card)
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

DRAFT_CHECKS: Final[tuple[tuple[int | None, DraftCheck], ...]] = (
    # Source: facts 2.3, 2.4; no subcode where none is documented; lengths before searches
    #   subcode  violation
    (None,    _body_missing),
    (2388040, _check_length("HEADER", 60)),
    (2388047, _header_malformed),
    (2388040, _check_length("BODY", 1024)),
    (2388040, _check_length("FOOTER", 60)),
    (2388073, _footer_malformed),
    (2388047, _check_variable_names("HEADER")),
    (2388072, _check_variable_names("BODY")),
    (2388299, _leading_or_trailing),
    (2388293, _too_little_text),
    (2388043, _header_example_missing),
    (2388043, _body_example_missing),
    (None,    _lifetime_malformed),
    (None,    authentication_malformed),
    (None,    offer_malformed),  # Source: facts 2.2, 2.3, as the next three
    (None,    catalog_malformed),
    (None,    flow_malformed),
    (None,    carousel_malformed),
    (None,    utility_malformed),
    (2388040, _check_cards(_check_length("BODY", 160))),
    (2388072, _check_cards(_check_variable_names("BODY"))),
    (2388043, _check_cards(_header_example_missing)),
    (2388043, _check_cards(_body_example_missing)),
)
# fmt: on
