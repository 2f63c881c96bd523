"""The modes of a subscription, described as the form offers them."""

import json
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.client.api_client import ApiResponseError
from waypost.console.web.page_request import InvalidPageRequest, PageRequest
from waypost.domain.callbacks import MODE_ALL, MODES, Subscription


@dataclass(frozen=True, slots=True)
class ModeRow:
    """A checkbox of the form.

    Attributes:
        meaning: the events of the mode, in a sentence.
        is_v3_only: it has no effect in version 2.
        is_default: checked on a new form.
    """

    mode: str
    meaning: str
    is_v3_only: bool = False
    is_default: bool = False


MODE_GROUPS: Final = (  # Source: docs/how-to/receive-callbacks.md; facts 4.4
    (
        "Messages you send",
        (
            ModeRow("ENQUEUED", "The operator accepted a message.", is_default=True),
            ModeRow("SENT", "The operator sent it to the recipient.", is_default=True),
            ModeRow("DELIVERED", "It reached the recipient's device.", is_default=True),
            ModeRow("READ", "The recipient read or played it.", is_default=True),
            ModeRow("FAILED", "It failed, or its outcome is uncertain.", is_default=True),
            ModeRow("DELETED", "The recipient deleted it."),
            ModeRow("BILLING", "The price of a message, once per message."),
            ModeRow("PAYMENTS", "The status of a requested payment changed.", is_v3_only=True),
        ),
    ),
    (
        "Recipient activity",
        (
            ModeRow(
                "MESSAGE",
                "A recipient sent a message or media, tapped a button, chose from a list, or reacted.",
                is_default=True,
            ),
            ModeRow("FLOWS_MESSAGE", "A recipient submitted a flow.", is_v3_only=True),
            ModeRow(
                "OTHERS",
                "A recipient changed numbers, stopped or resumed marketing; and events without a type of their own.",
            ),
        ),
    ),
    (
        "Templates and account",
        (
            ModeRow(
                "TEMPLATE",
                "A template was reviewed, paused or disabled, or its quality or category changed.",
                is_default=True,
            ),
            ModeRow(
                "ACCOUNT",
                (
                    "The account or number was reviewed, restricted or got a new limit; or the service paused a "
                    "subscription."
                ),
            ),
        ),
    ),
    (
        "Everything",
        (ModeRow(MODE_ALL, "All of the above, and future events. No effect in version 2.", is_v3_only=True),),
    ),
)

DEFAULT_MODES: Final = tuple(row.mode for _, rows in MODE_GROUPS for row in rows if row.is_default)
OFFERED_MODES: Final = tuple(row.mode for _, rows in MODE_GROUPS for row in rows)


_API_FIELDS: Final = ("tag", "url", "modes", "meta")


@dataclass(slots=True)
class SubscriptionFields:
    """The values of the form.

    Attributes:
        header_names: of the stored headers; their values are never shown again.
        headers: new ones, one per line.
        removed: names that are checked for removal.
        wrong: errors by field; `form` for those of no field.
    """

    tag: str = ""
    url: str = ""
    version: str = "2"
    modes: tuple[str, ...] = DEFAULT_MODES
    header_names: tuple[str, ...] = ()
    headers: str = ""
    removed: tuple[str, ...] = ()
    do_check: bool = True
    wrong: dict[str, str] = field(default_factory=dict[str, str])

    def add_api_error(self, error: ApiResponseError) -> None:
        """Add an error of the API to the field that it is about."""
        self.wrong[error.top_field if error.top_field in _API_FIELDS else "form"] = _sentence(
            error.explanation or error.message
        )


def subscription_fields(subscription: Subscription) -> SubscriptionFields:
    """Return the form, filled from a subscription."""
    return SubscriptionFields(
        tag=subscription.tag,
        url=subscription.url,
        version=str(subscription.version),
        modes=subscription.modes,
        header_names=tuple(subscription.headers),
    )


async def read_fields(page_request: PageRequest, subscription: Subscription | None = None) -> SubscriptionFields:
    """Return the form as it was sent."""
    form = await page_request.form()
    names = tuple(subscription.headers) if subscription else ()
    return SubscriptionFields(
        tag=(await page_request.field("tag")).strip(),
        url=(await page_request.field("url")).strip(),
        version=await page_request.field("version"),
        modes=tuple(mode for mode in MODES if mode in form.getlist("modes")),
        header_names=names,
        headers=(await page_request.field("headers")).strip(),
        removed=tuple(name for name in names if name in form.getlist("remove")),
        do_check=await page_request.is_checked("check"),
    )


def encode_form(fields: SubscriptionFields, subscription: Subscription | None = None) -> dict[str, str]:
    """Return the form that the partner API is sent.

    Raises:
        InvalidPageRequest: a line is not a valid header.
    """
    form = {
        "tag": fields.tag,
        "url": fields.url,
        "version": fields.version,
        "modes": ",".join(fields.modes),
        "doCheck": "true" if fields.do_check else "false",
    }
    added = _parse_headers(fields.headers)
    if subscription is not None and not added and not fields.removed:
        return form
    if subscription is not None or added:
        meta: dict[str, Any] = json.loads(subscription.meta) if subscription and subscription.meta else {}
        kept = {
            name: text
            for name, text in (subscription.headers if subscription else {}).items()
            if name not in fields.removed and name.lower() not in {new.lower() for new in added}
        }
        form["meta"] = json.dumps({**meta, "headers": {**kept, **added}})
    return form


def _parse_headers(text: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            raise InvalidPageRequest(f"{line.strip()[:60]!r} is not a header.", "Use the form Name: value.")
        headers[name.strip()] = value.strip()
    return headers


def _sentence(text: str) -> str:
    """Return the API's text with a full stop at the end."""
    text = text.strip()
    return text if text.endswith(".") else f"{text}."
