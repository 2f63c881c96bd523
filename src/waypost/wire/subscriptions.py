"""Subscription forms and subscription objects."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from waypost.domain.refusals import Reason, Refused
from waypost.domain.subscription import MODE_ALIASES, MODE_BITS, Subscription
from waypost.wire.forms import Form, read_json

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OURS: Final = {"host", "content-length", "transfer-encoding", "connection", "content-type"}
VERSIONS: Final = ("2",)


class _Meta(msgspec.Struct):
    headers: dict[str, str | int] | None = None


_meta: Final = msgspec.json.Decoder(_Meta)


@dataclass(frozen=True, slots=True)
class SubscriptionForm:
    """What a partner asks for."""

    tag: str
    url: str
    version: int
    modes: tuple[str, ...]
    show_on_ui: bool
    meta: str | None
    headers: dict[str, str]
    do_check: bool


def read_subscription(form: Form) -> SubscriptionForm:
    """Read and check a form. Modes may be one comma-separated text or repeated fields.

    Source: facts 4.2.

    Raises:
        Refused: a field is missing or broken.
    """
    modes = _read_modes(form)
    tag = form.required("tag", "a name for the subscription, unique within the app")
    if len(tag) > 180:
        raise Refused(Reason.FIELD_BROKEN, "tag must be at most 180 characters.")
    url = form.required("url", "an http or https address")
    check_url(url)
    version = form.text("version") or "2"
    if version not in VERSIONS:
        raise Refused(
            Reason.FIELD_BROKEN, "version must be 2, the one version that this version delivers."
        )
    meta = form.text("meta") or None
    return SubscriptionForm(
        tag=tag,
        url=url,
        version=int(version),
        modes=modes,
        show_on_ui=form.flag("showOnUI"),
        meta=meta,
        headers=_read_headers(meta),
        do_check=form.flag("doCheck", default=True),
    )


def check_url(url: str) -> None:
    """An absolute http or https address of at most 2,000 characters.

    Raises:
        Refused: it is not; with the documented text.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or len(url) > 2000 or not url.isprintable() or " " in url:
        raise Refused(
            Reason.INVALID_URL,
            "url must be an absolute http or https address of at most 2000 characters.",
        )


def subscription_object(subscription: Subscription) -> dict[str, Any]:
    """A subscription as its creator and the list see it. Source: facts 4.3."""
    return {
        "active": subscription.active,
        "appId": subscription.app_id,
        "createdOn": subscription.created_on_ms,
        "id": subscription.id,
        "meta": subscription.meta or json.dumps({}),
        "mode": subscription.mode,
        "modes": list(subscription.modes),
        "modifiedOn": subscription.modified_on_ms,
        "showOnUI": subscription.show_on_ui,
        "tag": subscription.tag,
        "url": subscription.url,
        "version": subscription.version,
    }


def _read_modes(form: Form) -> tuple[str, ...]:
    given = form.all("modes", "modes[]")
    names = [name.strip().upper() for text in given for name in text.split(",") if name.strip()]
    if not names:
        raise Refused(
            Reason.FIELD_MISSING,
            f"Required request parameter 'modes' is not present: some of {','.join(MODE_BITS)}.",
        )
    known = [MODE_ALIASES.get(name, name) for name in names]
    for name in known:
        if name not in MODE_BITS:
            raise Refused(
                Reason.FIELD_BROKEN, f"modes must be some of {','.join(MODE_BITS)}, with commas."
            )
        if name == "ALL":
            raise Refused(
                Reason.FIELD_BROKEN, "modes may hold ALL in version 3 only; name each mode."
            )
    return tuple(mode for mode in MODE_BITS if mode in known)


def _read_headers(meta: str | None) -> dict[str, str]:
    if meta is None:
        return {}
    accepted = '{"headers":{"X-Name":"value"}}'
    headers = read_json(meta, _meta, name="meta", accepted=accepted).headers or {}
    checked = {name: str(value) for name, value in headers.items()}
    for name, value in checked.items():
        usable = value.isascii() and (value == "" or value.isprintable()) and len(value) <= 4000
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _OURS or not usable:
            raise Refused(
                Reason.FIELD_BROKEN,
                "meta.headers must be header names with printable ASCII values; "
                f"{', '.join(sorted(_OURS))} are ours to set.",
            )
    if len(checked) > 20:
        raise Refused(Reason.FIELD_BROKEN, "meta.headers must hold at most 20 headers.")
    return checked
