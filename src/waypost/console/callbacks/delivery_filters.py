"""Filters of the list of callbacks, parsed from the query string."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.console.web.page_request import InvalidPageRequest, PageRequest
from waypost.console.web.zones import ZONE_FIELD, read_time_field
from waypost.store.callbacks.deliveries import DELIVERY_STATES, DeliveryFilter

EVENT_SUGGESTIONS: Final = (  # suggestions for the event filter; any other text is accepted too
    "enqueued",
    "sent",
    "delivered",
    "read",
    "failed",
    "deleted",
    "billing-event",
    "text",
    "quick_reply",
    "button_reply",
    "list_reply",
    "image",
    "video",
    "audio",
    "file",
    "sticker",
    "location",
    "contact",
    "reaction",
    "order",
    "nfm_reply",
    "status-update",
    "quality-update",
    "category-update",
    "subscription-paused",
)
STATE_LABELS: Final = {"given up": "not delivered"}
"""Labels that differ from the name of the state."""
CALLBACK_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

# fmt: off
DELIVERY_TIMES: Final = (
    # query value   label           length; None: days of the reader's zone, or no fixed length
    ("",            "Any time",     None),
    ("hour",        "Last hour",    HOUR_MS),
    ("today",       "Today",        None),
    ("yesterday",   "Yesterday",    None),
    ("week",        "Last 7 days",  7 * DAY_MS),
    ("custom",      "Custom range", None),
)
QUICK_FILTERS: Final = (
    # label                     state        time
    ("All",                     "",          ""),
    ("Waiting",                 "waiting",   ""),
    ("Not delivered",           "given up",  ""),
    ("Not delivered today",     "given up",  "today"),
    ("Not delivered yesterday", "given up",  "yesterday"),
)
_FIELDS: Final = ("q", "subscription", "state", "event", "time", "from", "to")
# fmt: on


@dataclass(frozen=True, slots=True)
class DeliveryListFilter:
    """Filter of the list of callbacks.

    Attributes:
        values: of the form's fields, with times in the reader's zone.
        search: conditions of the search.
    """

    values: Mapping[str, str]
    search: DeliveryFilter

    @property
    def query(self) -> str:
        """The fields with a value, as a query string."""
        return urlencode({name: text for name, text in self.values.items() if text})

    @property
    def can_be_replayed(self) -> bool:
        """True if everything that matches can be counted and replayed at once: failures of a time range."""
        return self.search.state == "given up" and self.search.from_ms is not None and self.search.message_id is None


def read_delivery_filter(page_request: PageRequest, now_ms: int) -> DeliveryListFilter:
    """Return the filter in the query of the URL.

    Raises:
        InvalidPageRequest: a field has a value that the form never sends.
    """
    values = {name: page_request.query(name) for name in _FIELDS}
    if values["subscription"] and not (values["subscription"].isascii() and values["subscription"].isdecimal()):
        raise InvalidPageRequest("The subscription in the filter must be a number.")
    if values["state"] and values["state"] not in DELIVERY_STATES:
        raise InvalidPageRequest("The state in the filter is unknown.")
    from_ms, to_ms = _read_time_range(page_request, values, now_ms)
    search = DeliveryFilter(
        subscription_id=int(values["subscription"][:18]) if values["subscription"] else None,
        state=values["state"] or None,
        event=values["event"] or None,
        from_ms=from_ms,
        to_ms=to_ms,
    )
    if CALLBACK_ID.fullmatch(values["q"]):
        search = replace(search, message_id=values["q"].lower())
    elif values["q"]:
        search = replace(search, recipient=normalize_recipient(values["q"]))
    return DeliveryListFilter(values, search)


def _read_time_range(page_request: PageRequest, values: dict[str, str], now_ms: int) -> tuple[int | None, int | None]:
    fields = page_request.request.query_params
    from_ms, values["from"] = read_callback_time(page_request, fields, "from")
    to_ms, values["to"] = read_callback_time(page_request, fields, "to")
    time = values["time"]
    if time in ("today", "yesterday"):
        today_ms = page_request.zone.day_start_ms(now_ms)
        return (today_ms, None) if time == "today" else (page_request.zone.day_start_ms(today_ms - 1), today_ms)
    lengths = {name: length_ms for name, _, length_ms in DELIVERY_TIMES}
    if time not in lengths:
        raise InvalidPageRequest("The time in the filter is unknown.")
    length_ms = lengths[time]
    if length_ms is not None:
        return now_ms - length_ms, None
    if values["from"] or values["to"]:
        values |= {"time": "custom", ZONE_FIELD: page_request.zone.name}
    return from_ms, to_ms


def read_callback_time(page_request: PageRequest, fields: Mapping[str, str], name: str) -> tuple[int | None, str]:
    """Return the field `from` or `to`, and its value in the reader's zone.

    Raises:
        InvalidPageRequest: the text is not a time.
    """
    is_end = name == "to"
    try:
        return read_time_field(fields, name, page_request.zone, is_end=is_end)
    except ValueError:
        raise InvalidPageRequest(
            f"The {'end' if is_end else 'start'} time is not a valid time.",
            "Use a time such as 2026-11-22T10:00, or leave it empty.",
        ) from None


def normalize_recipient(text: str) -> str:
    """Return a phone number as it is stored, without punctuation; any other text unchanged."""
    digits = re.sub(r"[\s()+.\-]", "", text)
    return digits if digits.isascii() and digits.isdecimal() else text
