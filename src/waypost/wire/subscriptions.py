"""Subscription forms and subscription objects."""

import json
import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from waypost.domain.callbacks import CALLBACK_VERSIONS, MODE_ALL, MODES, Subscription, read_modes
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, missing_parameter
from waypost.wire.forms import MAX_FORM_FIELDS, Form, read_json

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_RESERVED_HEADERS: Final = {"host", "content-length", "transfer-encoding", "connection", "content-type"}
MAX_TAG_CHARS: Final = 180
_MODES: Final = ("modes", "modes[]", *(f"modes[{index}]" for index in range(MAX_FORM_FIELDS)))


class SubscriptionMeta(msgspec.Struct):
    """The known members of `meta`; others are stored and ignored."""

    headers: dict[str, str | int] | None = None


_meta_decoder: Final = msgspec.json.Decoder(SubscriptionMeta)


@dataclass(frozen=True, slots=True)
class SubscriptionForm:
    """The form of a subscription; of a change, with the present values of the omitted fields."""

    tag: str
    url: str
    version: int
    modes: tuple[str, ...]
    active: bool
    show_on_ui: bool
    meta: str | None
    headers: dict[str, str]
    do_check: bool  # true if its URL is to be pinged


def read_subscription(form: Form, current: Subscription | None = None) -> SubscriptionForm:
    """Read and check the form of a new subscription, or of a change, whose omitted fields stay unchanged.

    A new URL is pinged, unless `doCheck` is false.

    Source: facts 4.1, 4.2, 4.5.

    Raises:
        ApiError: a field is missing or invalid.
    """
    # They are sent as a comma-separated text, as a mask, as repeated fields, or as `modes[]` and `modes[0]`.
    modes = read_modes(form.all_values(*_MODES)) or (() if current is None else current.modes)
    if not modes and current is None:
        raise missing_parameter("modes", f"some of {','.join(MODES)}")
    if current is None:
        tag = _checked_tag(form.required("tag", "a name for the subscription, unique within the app"))
        url = form.required("url", "an http or https address")
        former_version, is_active, is_shown = 2, True, False
    else:
        tag, url = _checked_tag(form.text("tag") or current.tag), form.text("url") or current.url
        former_version, is_active, is_shown = current.version, current.active, current.show_on_ui
    check_url(url)
    version = _read_version(form) or former_version
    _check_mode_all(modes, version)
    meta = form.text("meta")
    if meta is None and current is not None:
        meta = current.meta
    return SubscriptionForm(
        tag=tag,
        url=url,
        version=version,
        modes=modes,
        active=is_active if current is None else form.flag("active", default=is_active),
        show_on_ui=form.flag("showOnUI", default=is_shown),
        meta=meta or None,
        headers=_read_headers(meta or None),
        do_check=form.flag("doCheck", default=True) and (current is None or url != current.url),
    )


def check_url(url: str, name: str = "url") -> None:
    """Raise an error if a URL is not an absolute http or https URL of at most 2,000 characters.

    Args:
        name: of its field, for the error.

    Raises:
        ApiError: with the documented text.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or len(url) > 2000 or not url.isprintable() or " " in url:
        accepted = "an absolute http or https address of at most 2000 characters"
        raise ApiError(ErrorCode.INVALID_URL, f"{name} must be {accepted}.", field=name, accepted=accepted)


class SubscriptionObject(
    msgspec.Struct,
    rename={"app_id": "appId", "created_on_ms": "createdOn", "modified_on_ms": "modifiedOn", "show_on_ui": "showOnUI"},
):
    """A subscription in a response. Source: facts 4.3."""

    active: bool
    app_id: str
    created_on_ms: int
    id: str
    meta: str
    mode: int
    modes: list[str]
    modified_on_ms: int
    show_on_ui: bool
    tag: str
    url: str
    version: Literal[2, 3]


def subscription_object(subscription: Subscription) -> SubscriptionObject:
    """Return a subscription for a response.

    A subscription that the service has paused is not active; setting `active` resumes it (decision 0042).
    """
    return SubscriptionObject(
        active=subscription.receives_callbacks,
        app_id=subscription.app_id,
        created_on_ms=subscription.created_on_ms,
        id=subscription.id,
        meta=subscription.meta or json.dumps({}),
        mode=subscription.mode,
        modes=list(subscription.modes),
        modified_on_ms=subscription.modified_on_ms,
        show_on_ui=subscription.show_on_ui,
        tag=subscription.tag,
        url=subscription.url,
        version=3 if subscription.version == 3 else 2,
    )


def _check_mode_all(modes: tuple[str, ...], version: int) -> None:
    if modes == (MODE_ALL,) and version != 3:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            "modes must name another mode beside ALL in version 2, where ALL adds nothing; or send version=3.",
            field="modes",
        )


def _read_version(form: Form) -> int | None:
    text = form.text("version")
    if not text:
        return None
    known = {str(version): version for version in CALLBACK_VERSIONS}
    if text.strip() not in known:
        raise invalid_field("version", " or ".join(known))
    return known[text.strip()]


def _checked_tag(tag: str) -> str:
    if len(tag) > MAX_TAG_CHARS:
        raise invalid_field("tag", f"at most {MAX_TAG_CHARS} characters")
    return tag


def _read_headers(meta: str | None) -> dict[str, str]:
    if meta is None:
        return {}
    accepted = '{"headers":{"X-Name":"value"}}'
    headers = read_json(meta, _meta_decoder, name="meta", accepted=accepted).headers or {}
    checked = {name: str(value) for name, value in headers.items()}
    for name, value in checked.items():
        usable = value.isascii() and (value == "" or value.isprintable()) and len(value) <= 4000
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _RESERVED_HEADERS or not usable:
            raise ApiError(
                ErrorCode.FIELD_BROKEN,
                "meta.headers must be header names with printable ASCII values; "
                f"{', '.join(sorted(_RESERVED_HEADERS))} are ours to set.",
                field="meta.headers",
            )
    if len(checked) > 20:
        raise ApiError(ErrorCode.FIELD_BROKEN, "meta.headers must hold at most 20 headers.", field="meta.headers")
    return checked
