"""What the control door takes, as shapes; and reading them with refusals that say what would do."""

from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.simulator.control_guard import ControlRefused
from waypost.simulator.settings import StatusesVersion

Text = Annotated[str, Meta(min_length=1, max_length=4096)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Id = Annotated[str, Meta(pattern="^[0-9]{1,32}$")]
Digits = Annotated[str, Meta(pattern="^\\+?[0-9]{8,15}$")]
DelayMs = Annotated[int, Meta(ge=0, le=7 * 24 * 3600 * 1000)]
WaitMs = Annotated[int, Meta(ge=0, le=60_000)]
Address = Annotated[str, Meta(pattern="^(https?://.+)?$", max_length=2000)]


class _Shape(Struct, frozen=True, forbid_unknown_fields=True):
    """`accepted` says in words what the shape takes."""

    accepted: ClassVar[str] = "an object without members"


class AccountShape(_Shape, frozen=True):
    """A business account."""

    accepted: ClassVar[str] = "{name, namespace?, token, app_id, app_secret}"
    name: Name
    token: Name
    app_id: Id
    app_secret: Name
    namespace: str = ""


class NumberShape(_Shape, frozen=True):
    """A business phone number."""

    accepted: ClassVar[str] = (
        "{waba_id, phone_number: 8 to 15 digits, name, throughput?: 1 to 100000}"
    )
    waba_id: Id
    phone_number: Digits
    name: Name
    throughput: Annotated[int, Meta(ge=1, le=100_000)] = 80


class WebhookShape(_Shape, frozen=True):
    """Where an app's webhooks go; an empty address means nowhere."""

    accepted: ClassVar[str] = "{callback_uri: an http or https address, verify_token}"
    callback_uri: Address
    verify_token: str


class PhoneShape(_Shape, frozen=True):
    """A phone's name and habits; what is absent stays as it is."""

    accepted: ClassVar[str] = (
        "{name?, deliver_after_ms?: 0 to 604800000, or null: as the settings say, "
        "read_after_ms?: 0 to 604800000, or null: only when told}"
    )
    name: Name | UnsetType = UNSET
    deliver_after_ms: DelayMs | UnsetType | None = UNSET
    read_after_ms: DelayMs | UnsetType | None = UNSET


class WriteShape(_Shape, frozen=True):
    """A phone writes to a business number."""

    accepted: ClassVar[str] = (
        "{to: a business number's digits, text: 1 to 4096 characters, context_id?}"
    )
    to: Digits
    text: Text
    context_id: Name | None = None


class TapShape(_Shape, frozen=True):
    """A phone taps a button: of a message, or of the newest that has any."""

    accepted: ClassVar[str] = "{message_id?, index or text of the button, wait_ms?: 0 to 60000}"
    message_id: Name | None = None
    index: Annotated[int, Meta(ge=0, le=99)] | None = None
    text: Name | None = None
    wait_ms: WaitMs = 0


class ReadShape(_Shape, frozen=True):
    """A phone reads: the chat that a message is in, or all its chats."""

    accepted: ClassVar[str] = "{message_id?, wait_ms?: 0 to 60000}"
    message_id: Name | None = None
    wait_ms: WaitMs = 0


class RejectShape(_Shape, frozen=True):
    """A reviewer rejects a template."""

    accepted: ClassVar[str] = "{reason?, explanation?, recommendation?}"
    reason: str = "INVALID_FORMAT"
    explanation: str = "The reviewer rejected this template."
    recommendation: str = "Change the template and submit it again."


class NothingShape(_Shape, frozen=True):
    """A call that needs no more than its path."""


class SettingsShape(_Shape, frozen=True):
    """Settings that may change while the simulator runs; what is absent stays as it is."""

    accepted: ClassVar[str] = (
        "{review_delay_ms?: null or 0 to 604800000, deliver_after_ms?: 0 to 604800000, "
        "read_after_ms?: null or 0 to 604800000, batch_at_most?: 1 to 1000, "
        "gather_ms?: 0 to 10000, limits?: a boolean, statuses_version?: v23 or v24}"
    )
    review_delay_ms: DelayMs | UnsetType | None = UNSET
    deliver_after_ms: DelayMs | UnsetType = UNSET
    read_after_ms: DelayMs | UnsetType | None = UNSET
    batch_at_most: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET
    gather_ms: Annotated[int, Meta(ge=0, le=10_000)] | UnsetType = UNSET
    limits: bool | UnsetType = UNSET
    statuses_version: StatusesVersion | UnsetType = UNSET


Shape = TypeVar("Shape", bound=_Shape)


def read_shape(shape: type[Shape], raw: bytes) -> Shape:
    """Decode a body; an empty one counts as an object without members.

    Raises:
        ControlRefused: 400, with the path of the field that is wrong.
    """
    try:
        return msgspec.json.decode(raw or b"{}", type=shape)
    except msgspec.ValidationError as error:
        rule, _, path = str(error).partition(" - at `$.")
        raise ControlRefused(
            400, field=path.rstrip("`") or "body", rule=rule, accepted=shape.accepted
        ) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ControlRefused(
            400, field="body", rule=f"is not readable JSON: {error}", accepted=shape.accepted
        ) from error


def given(shape: _Shape) -> dict[str, Any]:
    """The members that the caller gave."""
    members = {name: getattr(shape, name) for name in shape.__struct_fields__}
    return {name: value for name, value in members.items() if value is not UNSET}
