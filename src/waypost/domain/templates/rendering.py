"""A template's parts flattened into the one text of its record, and the texts that are not its author's own."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from waypost.domain.templates.buttons import Button, ButtonKind
from waypost.domain.templates.extras import TEMPLATE_EXTRAS
from waypost.domain.templates.field_rules import SECURITY
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.template import Category
from waypost.domain.templates.variables import without_variables

CODE_SENTENCE: Final = "*{{1}}* is your verification code."
OTP_ADDRESS: Final = "https://www.whatsapp.com/otp/code/"
COPY_OFFER: Final = "Copy offer code"
MOST_HEADER_CHARS: Final = 60  # Source: operator's facts 2.3


def flattened(draft: Draft) -> str:
    """Header, body, extras and footer on lines of their own, buttons behind ` | `.

    Source: spec, "Template record", data; construction from facts 3.2; clients split at `| [` and
    at commas (facts 17).
    """
    extras = [extra.line(draft) for extra in TEMPLATE_EXTRAS]
    lines = [draft.header, body_of(draft), *extras, footer_of(draft)]
    return " | ".join(["\n".join(line for line in lines if line), *(shown(one, draft) for one in draft.buttons)])


def shown(button: Button, draft: Draft | None = None) -> str:
    """A button as it stands in `data`: `[text]`, or `[text,value]` where it opens or copies something.

    Args:
        button: the button.
        draft: whose it is; of an OTP button the code's lifetime is in the address.

    Source: facts 3.2.
    """
    match button.kind:
        case ButtonKind.URL:
            return f"[{button.text},{button.url}]"
        case ButtonKind.PHONE_NUMBER:
            return f"[{button.text},{button.phone_number}]"
        case ButtonKind.COPY_CODE:
            return f"[{COPY_OFFER},{{{{1}}}}]"
        case ButtonKind.OTP:
            minutes = draft.code_expiration_minutes if draft else None
            return f"[{button.text},{otp_url(button, minutes)}]"
        case _:
            return f"[{button.text}]"


def body_of(draft: Draft) -> str:
    """The body as a recipient gets it: of AUTHENTICATION it is the operator's, whatever was sent.

    Source: facts 3.2, AUTH; decision 0016.
    """
    if draft.category != Category.AUTHENTICATION:
        return draft.content or ""
    return f"{CODE_SENTENCE} {SECURITY}" if draft.add_security_recommendation else CODE_SENTENCE


def footer_of(draft: Draft) -> str | None:
    """The footer; of AUTHENTICATION the sentence of its code's lifetime, where one was given.

    Source: spec, "Create template", codeExpirationMinutes; wording from facts 3.2.
    """
    if draft.category != Category.AUTHENTICATION:
        return draft.footer
    minutes = draft.code_expiration_minutes
    return None if minutes is None else f"This code expires in {minutes} minutes."


def otp_url(button: Button, minutes: int | None) -> str:
    """The address that an OTP button becomes at the operator.

    Args:
        button: the button.
        minutes: how long the code lives, where the draft says so.

    Source: facts 3.2, AUTH.
    """
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in _otp(button, minutes))
    return f"{OTP_ADDRESS}?{query}&code=otp{{{{1}}}}"


def _otp(button: Button, minutes: int | None) -> Iterator[tuple[str, str]]:
    yield "otp_type", button.otp_type
    if button.autofill_text:
        yield "cta_display_name", button.autofill_text
    for app in button.supported_apps:
        yield "package_name", app.package_name
        yield "signature_hash", app.signature_hash
    if minutes is not None:
        yield "code_expiration_minutes", str(minutes)


def product_header(content: str) -> str:
    """The header that the operator gets for a PRODUCT template, which it requires and the spec refuses.

    The first line of the body, at most 60 characters; variables and formatting are left out,
    because a header's variable would take a parameter that no sender knows of.

    Source: decision 0017.
    """
    line = " ".join(without_variables(content.strip().partition("\n")[0]))
    plain = re.sub(r"\s+", " ", re.sub(r"[*_~`]", "", line))
    plain = re.sub(r" (?=[,.;:!?])", "", plain).strip(" ,;:")  # where a variable stood
    return plain[:MOST_HEADER_CHARS].strip() or "Items"
