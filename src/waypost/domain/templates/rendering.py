"""Rendering of a template: the single text of its record, and the texts that the operator supplies."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.extras import TEMPLATE_EXTRAS
from waypost.domain.templates.field_rules import SECURITY_SENTENCE
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Category
from waypost.domain.templates.variables import EMOJI, split_at_variables

CODE_SENTENCE: Final = "*{{1}}* is your verification code."
OTP_URL: Final = "https://www.whatsapp.com/otp/code/"
COPY_OFFER_LABEL: Final = "Copy offer code"
MAX_HEADER_CHARS: Final = 60  # Source: operator's facts 2.3


def flatten_template(draft: TemplateDraft) -> str:
    """Return the record's `data`: header, body, extras and footer on separate lines, buttons after ` | `.

    Source: spec, "Template record", data; construction from facts 3.2; clients split at `| [` and
    at commas (facts 17).
    """
    extras = [extra.record_text(draft) for extra in TEMPLATE_EXTRAS]
    lines = [draft.header, render_body(draft), *extras, render_footer(draft)]
    return " | ".join(
        ["\n".join(line for line in lines if line), *(render_button(button, draft) for button in draft.buttons)]
    )


def render_button(button: TemplateButton, draft: TemplateDraft | None = None) -> str:
    """Return a button for `data`: `[text]`, or `[text,value]` where it opens or copies something.

    Args:
        button: the button.
        draft: its template; the URL of an OTP button contains the code's lifetime.

    Source: facts 3.2.
    """
    match button.kind:
        case ButtonKind.URL:
            return f"[{button.text},{button.url}]"
        case ButtonKind.PHONE_NUMBER:
            return f"[{button.text},{button.phone_number}]"
        case ButtonKind.COPY_CODE:
            return f"[{COPY_OFFER_LABEL},{{{{1}}}}]"
        case ButtonKind.OTP:
            minutes = draft.code_expiration_minutes if draft else None
            return f"[{button.text},{otp_url(button, minutes)}]"
        case _:
            return f"[{button.text}]"


def render_body(draft: TemplateDraft) -> str:
    """Return the body that a recipient gets; of AUTHENTICATION the operator's, whatever was submitted.

    Source: facts 3.2, AUTH; decision 0016.
    """
    if draft.category != Category.AUTHENTICATION:
        return draft.content or ""
    return f"{CODE_SENTENCE} {SECURITY_SENTENCE}" if draft.add_security_recommendation else CODE_SENTENCE


def render_footer(draft: TemplateDraft) -> str | None:
    """Return the footer; of AUTHENTICATION the sentence about the code's lifetime, if one was given.

    Source: spec, "Create template", codeExpirationMinutes; wording from facts 3.2.
    """
    if draft.category != Category.AUTHENTICATION:
        return draft.footer
    minutes = draft.code_expiration_minutes
    if minutes is None:
        return None
    return f"This code expires in {minutes} minute{'' if minutes == 1 else 's'}."


def otp_url(button: TemplateButton, minutes: int | None) -> str:
    """Return the URL that the operator makes of an OTP button.

    Args:
        button: the button.
        minutes: the code's lifetime, if the draft has one.

    Source: facts 3.2, AUTH.
    """
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in _otp_query(button, minutes))
    return f"{OTP_URL}?{query}&code=otp{{{{1}}}}"


def _otp_query(button: TemplateButton, minutes: int | None) -> Iterator[tuple[str, str]]:
    yield "otp_type", button.otp_type
    if button.autofill_text:
        yield "cta_display_name", button.autofill_text
    for app in button.supported_apps:
        yield "package_name", app.package_name
        yield "signature_hash", app.signature_hash
    if minutes is not None:
        yield "code_expiration_minutes", str(minutes)


def product_header(content: str) -> str:
    """Return the header of a PRODUCT template for the operator, which requires one; the spec forbids it.

    It is the first line of the body, at most 60 characters, without variables, emoji and formatting, because
    a variable in the header would need a parameter that no sender gives.

    Source: decision 0017.
    """
    line = " ".join(split_at_variables(content.strip().partition("\n")[0]))
    plain = re.sub(r"\s+", " ", re.sub(rf"[*_~`]|{EMOJI}", "", line))
    plain = re.sub(r" (?=[,.;:!?])", "", plain).strip(" ,;:")  # left by a removed variable
    return plain[:MAX_HEADER_CHARS].strip() or "Items"
