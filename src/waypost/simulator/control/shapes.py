"""What the control door takes, as shapes; and reading them with refusals that say what would do."""

from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.phones.conditions import CONDITIONS
from waypost.simulator.phones.fleets import PHONES_AT_MOST
from waypost.simulator.settings import StatusesVersion

USER_ID: Final = r"^[A-Z]{2}\.(ENT\.)?[0-9A-Za-z]{1,128}$"  # Source: facts 7.5
Text = Annotated[str, Meta(min_length=1, max_length=4096)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Id = Annotated[str, Meta(pattern="^[0-9]{1,32}$")]
Digits = Annotated[str, Meta(pattern="^\\+?[0-9]{8,15}$")]
DelayMs = Annotated[int, Meta(ge=0, le=7 * 24 * 3600 * 1000)]
WaitMs = Annotated[int, Meta(ge=0, le=60_000)]
Condition = Annotated[str, Meta(pattern=f"^({'|'.join(CONDITIONS)})?$")]
Seed = Annotated[str, Meta(max_length=64)] | int
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


class AppShape(_Shape, frozen=True):
    """An app."""

    accepted: ClassVar[str] = "{app_secret}"
    app_secret: Name


class NumberShape(_Shape, frozen=True):
    """A business phone number."""

    accepted: ClassVar[str] = "{waba_id, phone_number: 8 to 15 digits, name, throughput?: 1 to 100000}"
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
    """A phone's name, habits and identity; what is absent stays as it is."""

    accepted: ClassVar[str] = (
        "{name?, deliver_after_ms?: 0 to 604800000, or null: as the settings say, "
        "read_after_ms?: 0 to 604800000, or null: only when told, user_id?: as in US.1349, or empty: "
        "the number's own, username?, shows_number?: false needs a user_id, "
        f"condition?: empty, {', '.join(CONDITIONS)}, sends_read_receipts?: a boolean, "
        "has_chat_open?: a boolean, is_offline?: a boolean, script?: a list of steps, seed?}"
    )
    name: Name | UnsetType = UNSET
    user_id: Annotated[str, Meta(pattern=f"{USER_ID}|^$")] | UnsetType = UNSET
    username: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    shows_number: bool | UnsetType = UNSET
    deliver_after_ms: DelayMs | UnsetType | None = UNSET
    read_after_ms: DelayMs | UnsetType | None = UNSET
    condition: Condition | UnsetType = UNSET
    sends_read_receipts: bool | UnsetType = UNSET
    has_chat_open: bool | UnsetType = UNSET
    is_offline: bool | UnsetType = UNSET
    script: list[Any] | UnsetType = UNSET
    seed: Seed | UnsetType = UNSET


class FleetShape(_Shape, frozen=True):
    """Phones with consecutive numbers, and what all of them have in common."""

    accepted: ClassVar[str] = (
        "{name: 1 to 64 of a-z, 0-9, - and _, first: 8 to 15 digits, "
        f"count: 1 to {PHONES_AT_MOST}, script?: a list of steps, seed?, "
        "open_window_to?: a business number's digits, deliver_after_ms?: 0 to 604800000, or null: as "
        "the settings say, read_after_ms?: 0 to 604800000, or null: only when told, "
        f"condition?: empty, {', '.join(CONDITIONS)}, sends_read_receipts?: a boolean, "
        "has_chat_open?: a boolean}"
    )
    name: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]{0,63}$")]
    first: Digits
    count: Annotated[int, Meta(ge=1, le=PHONES_AT_MOST)]
    script: list[Any] = []
    seed: Seed | None = None
    open_window_to: Digits | None = None
    deliver_after_ms: DelayMs | UnsetType | None = UNSET
    read_after_ms: DelayMs | UnsetType | None = UNSET
    condition: Condition | UnsetType = UNSET
    sends_read_receipts: bool | UnsetType = UNSET
    has_chat_open: bool | UnsetType = UNSET


class MediumShape(_Shape, frozen=True):
    """What a phone sends along: its bytes, or media that the business number has already."""

    id: Id | None = None
    content: bytes = b""
    mime_type: Annotated[str, Meta(max_length=100)] = ""
    file_name: Annotated[str, Meta(max_length=240)] = ""
    caption: Annotated[str, Meta(max_length=1024)] | None = None
    voice: bool = False
    animated: bool = False


class WriteShape(_Shape, frozen=True):
    """A phone sends a message to a business number."""

    accepted: ClassVar[str] = (
        "{to: a business number's digits, text: 1 to 4096 characters, context_id?}; or with a type: "
        "image, video, audio, document or sticker with media {id, or content: base64 and mime_type; "
        "file_name?, caption?, voice?, animated?}; location, contacts, reaction, order or "
        "unsupported with a member of that name; and with any type forwarded?, "
        "frequently_forwarded?, referred_product?, referral?"
    )
    to: Digits
    type: str = "text"
    text: Text | None = None
    media: MediumShape | None = None
    location: dict[str, Any] | None = None
    contacts: list[dict[str, Any]] | None = None
    reaction: dict[str, Any] | None = None
    order: dict[str, Any] | None = None
    unsupported: dict[str, Any] | None = None
    context_id: Name | None = None
    forwarded: bool = False
    frequently_forwarded: bool = False
    referred_product: dict[str, Any] | None = None
    referral: dict[str, Any] | None = None


class TapShape(_Shape, frozen=True):
    """A phone taps a button: of a message, or of the newest that has any."""

    accepted: ClassVar[str] = (
        "{message_id?, card?: 0 to 9, index or text of the button, or not_requested: true under a "
        "one-time code, wait_ms?: 0 to 60000}"
    )
    message_id: Name | None = None
    card: Annotated[int, Meta(ge=0, le=9)] | None = None
    index: Annotated[int, Meta(ge=0, le=99)] | None = None
    text: Name | None = None
    not_requested: bool = False
    wait_ms: WaitMs = 0


class AnswerShape(_Shape, frozen=True):
    """A phone sends a flow, an address or a choice back."""

    accepted: ClassVar[str] = "{message_id?, response: an object with what was filled in, wait_ms?: 0 to 60000}"
    message_id: Name | None = None
    response: dict[str, Any] = {}
    wait_ms: WaitMs = 0


class PayShape(_Shape, frozen=True):
    """A phone pays an order, or fails to."""

    accepted: ClassVar[str] = (
        "{message_id?, status?: captured, failed or pending, code?, reason?, wait_ms?: 0 to 60000}"
    )
    message_id: Name | None = None
    status: Literal["captured", "failed", "pending"] = "captured"
    code: Name = "BAD_REQUEST_ERROR"
    reason: Name = "payment_failed"
    wait_ms: WaitMs = 0


class NumberChangeShape(_Shape, frozen=True):
    """A phone's owner moves to another number."""

    accepted: ClassVar[str] = "{to: the new number, 8 to 15 digits}"
    to: Digits


class MarketingShape(_Shape, frozen=True):
    """A phone's owner stops a business's marketing, or takes it again."""

    accepted: ClassVar[str] = "{to: a business number's digits, wants: a boolean}"
    to: Digits
    wants: bool


class BlockShape(_Shape, frozen=True):
    """A phone's owner blocks a business, or takes that back."""

    accepted: ClassVar[str] = "{to: a business number's digits, blocks: a boolean}"
    to: Digits
    blocks: bool


class ReportShape(_Shape, frozen=True):
    """A phone's owner reports a business for spam, and perhaps blocks it as well."""

    accepted: ClassVar[str] = "{to: a business number's digits, message_id?, blocks?: a boolean}"
    to: Digits
    message_id: Name | None = None
    blocks: bool = False


class StatusShape(_Shape, frozen=True):
    """Any status of a message, told now."""

    accepted: ClassVar[str] = (
        "{message_id, status: letters and underscores, code?, title?, details?, "
        "names_recipient?: a boolean, recipient_user_id?}"
    )
    message_id: Name
    status: Annotated[str, Meta(pattern="^[a-z_]{1,32}$")]
    code: Annotated[int, Meta(ge=0, le=9_999_999)] | None = None
    title: str = ""
    details: str = ""
    names_recipient: bool = True
    recipient_user_id: Annotated[str, Meta(pattern=USER_ID)] | None = None


class WebhookUpdateShape(_Shape, frozen=True):
    """Anything about an account, told now through its ordinary webhook."""

    accepted: ClassVar[str] = "{field: a webhook field's name, value: an object}"
    field: Annotated[str, Meta(pattern="^[a-z_]{1,64}$")]
    value: dict[str, Any]


class QualityShape(_Shape, frozen=True):
    """A template's new quality."""

    accepted: ClassVar[str] = "{score: GREEN, YELLOW, RED or UNKNOWN}"
    score: Literal["GREEN", "YELLOW", "RED", "UNKNOWN"]


class CategoryShape(_Shape, frozen=True):
    """A template's other category: announced with the time at which it comes, or come."""

    accepted: ClassVar[str] = "{category: UTILITY, MARKETING or AUTHENTICATION, announced?: a boolean, due_ms?}"
    category: Literal["UTILITY", "MARKETING", "AUTHENTICATION"]
    announced: bool = False
    due_ms: Annotated[int, Meta(ge=0)] | None = None


class PaceShape(_Shape, frozen=True):
    """How long a template's messages are held, and what then becomes of them."""

    accepted: ClassVar[str] = "{for_ms?: 0 to 604800000, or null: until it is told, verdict?: release or drop}"
    for_ms: DelayMs | None = None
    verdict: Literal["release", "drop"] = "release"


class ActShape(_Shape, frozen=True):
    """Something done to a template; title and description go into the webhook's `other_info`."""

    accepted: ClassVar[str] = "{reason?, title?, description?}"
    reason: str | None = None
    title: str = ""
    description: str = ""


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
        "gather_ms?: 0 to 10000, limits?: a boolean, statuses_version?: v23 or v24, "
        "check_references?: a boolean, check_languages?: a boolean, strict?: a boolean, "
        "marketing_words?: at most 100 texts of 1 to 100 characters, "
        "templates_at_most?: 1 to 6000, calls_per_hour?: null or 1 to 100000, "
        "window_at_once?: a boolean, messaging_limit_code?: 130429 or 131048, "
        "throttle_status?: 400 or 429, tells_retry_after?: a boolean, "
        "statuses_contacts?: a boolean, user_ids?: a boolean, skips_delivered?: a boolean}"
    )
    review_delay_ms: DelayMs | UnsetType | None = UNSET
    deliver_after_ms: DelayMs | UnsetType = UNSET
    read_after_ms: DelayMs | UnsetType | None = UNSET
    batch_at_most: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET
    gather_ms: Annotated[int, Meta(ge=0, le=10_000)] | UnsetType = UNSET
    limits: bool | UnsetType = UNSET
    statuses_version: StatusesVersion | UnsetType = UNSET
    check_references: bool | UnsetType = UNSET
    check_languages: bool | UnsetType = UNSET
    strict: bool | UnsetType = UNSET
    marketing_words: (
        Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=100)], ...], Meta(max_length=100)] | UnsetType
    ) = UNSET
    templates_at_most: Annotated[int, Meta(ge=1, le=6000)] | UnsetType = UNSET
    calls_per_hour: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType | None = UNSET
    window_at_once: bool | UnsetType = UNSET
    messaging_limit_code: Literal[130429, 131048] | UnsetType = UNSET
    throttle_status: Literal[400, 429] | UnsetType = UNSET
    tells_retry_after: bool | UnsetType = UNSET
    statuses_contacts: bool | UnsetType = UNSET
    user_ids: bool | UnsetType = UNSET
    skips_delivered: bool | UnsetType = UNSET


Shape = TypeVar("Shape", bound=_Shape)


def read_shape(shape: type[Shape], raw: bytes) -> Shape:
    """Decode a body; an empty one counts as an object without members.

    Raises:
        ControlRefused: 400, with the path of the field that is wrong.
    """
    try:
        return msgspec.json.decode(raw or b"{}", type=shape)
    except msgspec.ValidationError as error:
        raise _refused(shape, error) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ControlRefused(
            400, field="body", rule=f"is not readable JSON: {error}", accepted=shape.accepted
        ) from error


def as_shape(shape: type[Shape], members: dict[str, Any]) -> Shape:
    """The same for members that are values already.

    Raises:
        ControlRefused: 400, with the path of the field that is wrong.
    """
    try:
        return msgspec.convert(members, shape, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise _refused(shape, error) from error


def _refused(shape: type[_Shape], error: msgspec.ValidationError) -> ControlRefused:
    rule, _, path = str(error).partition(" - at `$.")
    field = path.rstrip("`") or "body"
    return ControlRefused(400, field=field, rule=rule, accepted=shape.accepted)


def given(shape: _Shape) -> dict[str, Any]:
    """The members that the caller gave."""
    members = {name: getattr(shape, name) for name in shape.__struct_fields__}
    return {name: value for name, value in members.items() if value is not UNSET}
