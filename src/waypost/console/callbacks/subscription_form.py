"""The form of a subscription: its fields, and the form that the partner API is sent."""

import json
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.modes import DEFAULTS
from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest
from waypost.domain.callbacks.subscription import MODES, Subscription

_FIELDS: Final = ("tag", "url", "modes", "meta")


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
    modes: tuple[str, ...] = DEFAULTS
    header_names: tuple[str, ...] = ()
    headers: str = ""
    removed: tuple[str, ...] = ()
    do_check: bool = True
    wrong: dict[str, str] = field(default_factory=dict[str, str])

    def refuse(self, refused: ApiResponseError) -> None:
        """Add an error of the API to the field that it is about."""
        self.wrong[refused.top_field if refused.top_field in _FIELDS else "form"] = _sentence(
            refused.explanation or refused.message
        )


def fields_of(held: Subscription) -> SubscriptionFields:
    """Return the form, filled from a subscription."""
    return SubscriptionFields(
        tag=held.tag, url=held.url, version=str(held.version), modes=held.modes, header_names=tuple(held.headers)
    )


async def read_fields(visit: PageRequest, held: Subscription | None = None) -> SubscriptionFields:
    """Return the form as it was sent."""
    form = await visit.form()
    names = tuple(held.headers) if held else ()
    return SubscriptionFields(
        tag=(await visit.field("tag")).strip(),
        url=(await visit.field("url")).strip(),
        version=await visit.field("version"),
        modes=tuple(mode for mode in MODES if mode in form.getlist("modes")),
        header_names=names,
        headers=(await visit.field("headers")).strip(),
        removed=tuple(name for name in names if name in form.getlist("remove")),
        do_check=await visit.flag("check"),
    )


def form_for_api(given: SubscriptionFields, held: Subscription | None = None) -> dict[str, str]:
    """Return the form that the partner API is sent.

    Raises:
        NotMeant: a line is not a valid header.
    """
    form = {
        "tag": given.tag,
        "url": given.url,
        "version": given.version,
        "modes": ",".join(given.modes),
        "doCheck": "true" if given.do_check else "false",
    }
    added = _headers_in(given.headers)
    if held is not None and not added and not given.removed:
        return form
    if held is not None or added:
        meta: dict[str, Any] = json.loads(held.meta) if held and held.meta else {}
        kept = {
            name: text
            for name, text in (held.headers if held else {}).items()
            if name not in given.removed and name.lower() not in {new.lower() for new in added}
        }
        form["meta"] = json.dumps({**meta, "headers": {**kept, **added}})
    return form


def _headers_in(text: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            raise NotMeant(f"{line.strip()[:60]!r} is not a header.", "Use the form Name: value.")
        headers[name.strip()] = value.strip()
    return headers


def _sentence(text: str) -> str:
    """Return the API's text with a full stop at the end."""
    text = text.strip()
    return text if text.endswith(".") else f"{text}."
