"""Checks of a business's message, in the operator's order: content, sender, recipient, window, limits."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.simulator.apis.errors import bad_parameter, message_error
from waypost.simulator.apis.parameters import is_missing
from waypost.simulator.flows.model import pin_flow_versions
from waypost.simulator.media.references import known_references
from waypost.simulator.messages.direct_send import DirectSend, read_direct_send, render_direct
from waypost.simulator.messages.limits import check_limits, check_send_rates, check_sender
from waypost.simulator.messages.marketing import MARKETING_CATEGORY, MARKETING_MARK, check_marketing_request
from waypost.simulator.messages.message_kinds import FREE_FORM_KINDS, render_message
from waypost.simulator.messages.statuses import FAILURE_TEXTS
from waypost.simulator.messages.template_sends import render_template
from waypost.simulator.numbers.model import is_blocked
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.phones import find_number, find_phone_by_user_id, recipient_digits, window_is_open
from waypost.simulator.state.script_steps import RenderedMessage
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.templates.model import find_template
from waypost.simulator.templates.template import AUTO_GENERATED, SimulatedTemplate, lifetime_ms

GROUP_PREFIX: Final = "group:"
"""The prefix of a group's id in the column of a message's phone."""
_MAX_GROUP_ID_CHARS: Final = 200
_MAX_CALLBACK_DATA_CHARS: Final = 512  # Source: facts 4.1
_NOT_SENDABLE: Final = {"PAUSED": 132015, "DISABLED": 132016}  # Source: facts 5.2


@dataclass(frozen=True)
class CheckedMessage:
    """A message whose content has been checked."""

    phone: str  # the digits of the recipient's phone, or `GROUP_PREFIX` and a group's id
    type: str  # a row of `FREE_FORM_KINDS`, or `template`
    template: SimulatedTemplate | None  # None for a session message
    rendered: RenderedMessage  # as the phone will show it
    direct: DirectSend  # the category and lifetime that replace a template's, if any
    callback_data: str | None  # the sender's own text, which every status echoes
    is_marketing: bool  # sent through the API for marketing messages

    @property
    def is_to_group(self) -> bool:
        """True if the recipient is a group."""
        return self.phone.startswith(GROUP_PREFIX)

    @property
    def category(self) -> str:
        """The category of its template, in capitals; empty for a session message."""
        return self.template.category if self.template is not None else self.direct.category.upper()

    @property
    def lifetime_ms(self) -> int:
        """The time that it may wait for its phone."""
        return lifetime_ms(self.template) if self.direct.lifetime_ms is None else self.direct.lifetime_ms

    @property
    def price_category(self) -> str:
        """The category of its price. Source: facts 7.3."""
        return MARKETING_CATEGORY if self.is_marketing else self.category.lower() or "service"


def check_content(
    state: SimulatorState, number: Number, request: dict[str, Any], *, to_marketing: bool = False
) -> CheckedMessage:
    """Check the envelope, the number's restrictions, and the content.

    Raises:
        GraphApiError: for the first violation.

    Source: facts 4, 5.2; groups: ledger C31.
    """
    if request.get("messaging_product") != "whatsapp":
        raise is_missing("messaging_product")
    if request.get("recipient_type", "individual") not in ("individual", "group"):
        raise bad_parameter("Param recipient_type must be one of {individual, group}.")
    phone, callback_data = _recipient(state, request), request.get("biz_opaque_callback_data")
    if callback_data is not None and not (
        isinstance(callback_data, str) and len(callback_data) <= _MAX_CALLBACK_DATA_CHARS
    ):
        raise bad_parameter(
            f"Param biz_opaque_callback_data must be a string of at most {_MAX_CALLBACK_DATA_CHARS} characters."
        )
    check_sender(state, number, phone, request.get("recipient_identity_key_hash"))
    kind: Any = request.get("type", "text")
    direct = read_direct_send(state, number.waba_id, request, kind)
    template: SimulatedTemplate | None = None
    if kind == "template":
        template, rendered = _template_message(state, number, request)
    elif isinstance(kind, str) and kind in FREE_FORM_KINDS:
        known = known_references(state, number.waba_id, number.phone_number_id)
        render = render_direct if direct.category else render_message
        rendered = render(kind, request.get(kind), known)
    else:
        raise message_error(131051, f"Message type {kind!r} is not supported")
    is_marketing = to_marketing and check_marketing_request(state, number.waba_id, request, template)
    if is_marketing:
        rendered = {**rendered, MARKETING_MARK: True}
    if "buttons" in rendered:
        rendered = {**rendered, "buttons": pin_flow_versions(state, number.waba_id, objects_in(rendered["buttons"]))}
    return CheckedMessage(phone, kind, template, rendered, direct, callback_data, is_marketing)


def check_recipient(state: SimulatorState, number: Number, checked: CheckedMessage) -> bool:
    """Check the recipient: the number itself, a block, the window, the limits; count the message toward the limits.

    Returns:
        True if the window is open.

    Raises:
        GraphApiError: for the first violation.

    Source: facts 5.2 (131047), 8, 13.
    """
    phone = checked.phone
    if phone == number.phone_number:
        raise message_error(131021, "Recipient phone number is the sender's own")
    if is_blocked(state, number.phone_number_id, phone):
        raise message_error(130403, "The business has blocked this user")
    is_open = window_is_open(state, number.phone_number_id, phone, state.clock.now_ms())
    if not checked.category and not is_open and state.settings.value.window_at_once:
        raise message_error(131047, FAILURE_TEXTS[131047])
    check_limits(state, number, phone, checked.template, checked.rendered, is_free=is_open)
    if state.settings.value.limits:
        check_send_rates(state, number, phone)
    return is_open


def _template_message(
    state: SimulatorState, number: Number, request: dict[str, Any]
) -> tuple[SimulatedTemplate, RenderedMessage]:
    content = object_or_none(request.get("template"))
    if content is None:
        raise is_missing("template")
    name = text_or_none(content.get("name"))
    if not name:
        raise is_missing("template['name']")
    written_language = object_or_none(content.get("language")) or {}
    language = written_language.get("code")
    if not isinstance(language, str):
        raise is_missing("template['language']['code']")
    if str(written_language.get("policy", "deterministic")).lower() != "deterministic":  # Source: facts 4.2
        raise bad_parameter("Param template['language']['policy'] must be one of {DETERMINISTIC}.")
    template = find_template(state, number.waba_id, name, language)
    if template is not None and template.status in _NOT_SENDABLE:
        raise message_error(_NOT_SENDABLE[template.status], f"template name ({name}) is {template.status.lower()}")
    if template is not None and template.source == AUTO_GENERATED:
        raise message_error(132018, "Direct send template can't be used for template message")
    if template is None or template.status != "APPROVED":
        raise message_error(132001, f"template name ({name}) does not exist in {language}")
    if not request.get("to") and template.category == "AUTHENTICATION":  # Source: facts 7.5
        raise message_error(131062, "A one-time code goes to a phone number")
    return template, render_template(
        template,
        content.get("components"),
        now_ms=state.clock.now_ms(),
        references=known_references(state, number.waba_id, number.phone_number_id),
    )


def _recipient(state: SimulatorState, request: dict[str, Any]) -> str:
    """Return the recipient under which a message is stored: the phone's digits, or a group. Source: facts 4.1, 7.5."""
    user_id, to = request.get("recipient"), request.get("to")
    if request.get("recipient_type") == "group":
        if not isinstance(to, str) or not 0 < len(to.strip()) <= _MAX_GROUP_ID_CHARS:
            raise bad_parameter("The parameter to is required: the id of a group.")
        return GROUP_PREFIX + to.strip()
    if not to and user_id:
        phone = find_phone_by_user_id(state, user_id) if isinstance(user_id, str) else None
        if phone is None:
            raise message_error(131009, "recipient: no user has this id")
        return phone.phone
    if not to:
        raise is_missing("to")
    digits = recipient_digits(str(to) if type(to) is int else to)
    if digits is None:
        raise message_error(131009, "to: a phone number has 8 to 15 digits")
    return find_number(state, digits)
