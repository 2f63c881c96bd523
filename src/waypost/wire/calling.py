"""Voice calls in the formats of the partner API: the event of a call, and the form of the settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from waypost.domain.coercion import Text, coerce_text, read_flag
from waypost.domain.errors import invalid_field, missing_parameter, wrong_type
from waypost.wire.forms import Form, mismatch, read_json

VOICE_EVENT: Final = "voice-event"
ACTIONS_WITH_SESSION: Final = ("accept", "pre_accept")  # the second is the operator's own
CALL_ACTIONS: Final = (*ACTIONS_WITH_SESSION, "reject", "terminate")  # Source: ledger 1.7
ICON_VISIBILITIES: Final = ("DEFAULT", "DISABLE_ALL")  # the second is the operator's own
SIP_MODE: Final = "GS_SIP"
_MAX_PORT: Final = 65535
_SERVERS: Final = "a list of objects with host and port"


@dataclass(frozen=True, slots=True)
class SipServer:
    """A SIP server that gets a number's calls."""

    hostname: str
    port: int


@dataclass(frozen=True, slots=True)
class CallSettings:
    """A number's settings for calls; None leaves one as it is."""

    is_enabled: bool
    icon_visibility: str | None = None  # of the button that starts a call
    hours: dict[str, Any] | None = None  # the hours in which people can call, as the operator has them
    sip_servers: Sequence[SipServer] | None = None  # the servers that get the calls by SIP; empty: calls come as events


@dataclass(frozen=True, slots=True)
class CallEvent:
    """An action of the partner on a call, whose id is the operator's; its session is passed on. Source: RFC 8866."""

    call_id: str
    action: str
    session: dict[str, str] | None = None


class VoiceSession(msgspec.Struct):
    """The `session` of the event of a call."""

    sdp: str
    sdp_type: str = "answer"


class VoiceAction(msgspec.Struct):
    """The `voice` of the event of a call. Source: ledger 1.7, voice-event."""

    action: str
    call_id: Text
    messaging_product: str = "whatsapp"
    session: VoiceSession | None = None


class SipAccount(msgspec.Struct):
    """One item of `metaData`: a SIP server. Source: ledger 1.7, `voice`."""

    host: str
    port: Text
    user: Text | None = None
    username: Text | None = None
    secret_key: Text | None = None
    force_tcp: bool | str | None = None


class OpenHours(msgspec.Struct):
    """Opening hours on one day of the week, as HHMM."""

    day_of_week: str
    open_time: Text
    close_time: Text


class HolidayHours(msgspec.Struct):
    """A time without calls on one day."""

    date: str
    start_time: Text
    end_time: Text


class CallHours(msgspec.Struct, omit_defaults=True):
    """The hours in which people can call. Source: ledger 1.7, `voice`."""

    status: Literal["ENABLED", "DISABLED"]
    timezone_id: str
    weekly_operating_hours: list[OpenHours]
    holiday_schedule: list[HolidayHours] | None = None


class VoiceParameters(msgspec.Struct):
    """The `additionalParams` of the settings for calls."""

    call_hours: CallHours | None = None


_accounts: Final = msgspec.json.Decoder(list[SipAccount])
_parameters: Final = msgspec.json.Decoder(VoiceParameters)


def read_voice(members: dict[str, Any]) -> CallEvent:
    """Return the event of a call.

    Raises:
        ApiError: a member is missing, or of another type or value.

    Source: ledger 1.7, voice-event.
    """
    try:
        voice = msgspec.convert(members.get("voice"), VoiceAction)
    except msgspec.ValidationError as error:
        raise wrong_type(
            "voice", f"an object with action and call_id{mismatch(error, VoiceAction, 'voice')}"
        ) from error
    if voice.messaging_product != "whatsapp":
        raise wrong_type("voice.messaging_product", "whatsapp")
    if voice.action not in CALL_ACTIONS:
        raise wrong_type("voice.action", " or ".join(CALL_ACTIONS))
    call_id = coerce_text(voice.call_id)
    if not call_id:
        raise wrong_type("voice.call_id", "the id of a call, as its event names it")
    if voice.action not in ACTIONS_WITH_SESSION:
        return CallEvent(call_id, voice.action)
    if voice.session is None:
        raise wrong_type("voice.session", f"an object with sdp_type and sdp, for {voice.action}")
    return CallEvent(call_id, voice.action, {"sdp_type": voice.session.sdp_type, "sdp": voice.session.sdp})


def read_call_settings(form: Form) -> CallSettings:
    """Return a number's settings for calls from the form.

    With the mode `GS_SIP` the operator sends calls to the first server's host and port; without it, calls that are
    enabled come as events.

    Raises:
        ApiError: a field is missing or invalid.

    Source: ledger 1.7, `voice`; decision 0107.
    """
    is_enabled = read_flag(form.required("enable", "true or false", "Boolean"), "enable")
    visibility = (form.text("iconVisibility") or "").upper() or None
    if visibility not in (None, *ICON_VISIBILITIES):
        raise invalid_field("iconVisibility", " or ".join(ICON_VISIBILITIES))
    mode = form.text("mode") or ""
    if mode not in ("", SIP_MODE):
        raise invalid_field("mode", f"{SIP_MODE}, or absent")
    servers = _read_servers(form) if mode else [] if is_enabled else None
    text, hours = form.text("additionalParams"), None
    if text:
        hours = read_json(text, _parameters, name="additionalParams", accepted="an object with call_hours").call_hours
    return CallSettings(is_enabled, visibility, None if hours is None else msgspec.to_builtins(hours), servers)


def _read_servers(form: Form) -> list[SipServer]:
    text = form.text("metaData")
    if not text:
        raise missing_parameter("metaData", f"{_SERVERS}, with the mode {SIP_MODE}")
    accounts = read_json(text, _accounts, name="metaData", accepted=_SERVERS)
    if not accounts:
        raise invalid_field("metaData", f"{_SERVERS}, at least one")
    return [_read_server(account) for account in accounts]


def _read_server(account: SipAccount) -> SipServer:
    host, port = account.host.strip(), coerce_text(account.port)
    if not host:
        raise invalid_field("metaData.host", "a host name")
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 1 <= int(port) <= _MAX_PORT):
        raise invalid_field("metaData.port", f"a number from 1 to {_MAX_PORT}")
    return SipServer(host, int(port))
