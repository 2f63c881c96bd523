"""The API for marketing messages: who may use it, clicks on links, and the statistics of their templates."""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.clock import DAY_MS
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.records import MARKETING
from waypost.simulator.errors import bad_parameter, message_error
from waypost.simulator.messages.analytics import DAY_S, count_data_points, find_template_id
from waypost.simulator.services import MARKETING_CLICKS, SimulatorServices
from waypost.simulator.simulator_state import Transaction
from waypost.simulator.tables.messages import SimulatedMessage
from waypost.simulator.templates.template import SimulatedTemplate

MARKETING_STATUSES: Final = ("INELIGIBLE", "ELIGIBLE", "ONBOARDED")  # Source: facts 1, "WABA node"
MARKETING_CATEGORY: Final = "marketing_lite"
"""The category of the price of a message that was sent through this API. Source: facts 7.3."""
_POLICIES: Final = ("CLOUD_API_FALLBACK", "STRICT")  # Source: the operator's page "Send Marketing Messages"


def find_marketing_status(state: SimulatorServices, waba_id: str) -> str:
    """Return one of `MARKETING_STATUSES`; an account may accept the terms until the control API says otherwise."""
    return str(state.records.get(waba_id, MARKETING).get("status", "ELIGIBLE"))


def check_marketing_request(
    state: SimulatorServices, waba_id: str, request: dict[str, Any], template: SimulatedTemplate | None
) -> bool:
    """Check a request, whose content has been checked.

    Returns true if the message is sent through this API; false if it is sent as any other, because the account's owner
    has not accepted the terms. Raises GraphApiError: 134100, no marketing template; 100, an unknown product policy or a
    sharing that is no boolean; 131055, a strict policy without accepted terms. Source: the operator's page "Send
    Marketing Messages"; facts 5.2.
    """
    if template is None or template.category != "MARKETING":
        raise message_error(134100, "Only templates of the category MARKETING are sent through this API.")
    policy = request.get("product_policy", _POLICIES[0])
    if policy not in _POLICIES:
        raise bad_parameter(f"Param product_policy must be one of {{{', '.join(_POLICIES)}}}.")
    if type(request.get("message_activity_sharing", False)) is not bool:
        raise bad_parameter("Param message_activity_sharing must be a boolean.")
    if find_marketing_status(state, waba_id) == "ONBOARDED":
        return True
    if policy == "STRICT":
        raise message_error(131055, "The terms of the Marketing Messages API have not been accepted.")
    return False


MARKETING_MARK: Final = "marketing_messages"
"""The member that marks a message sent through this API in what its phone shows."""
_CLICKS_FOR_MS: Final = 7 * DAY_MS  # Source: the operator's page "Tracking click events"


async def click_link(state: SimulatorServices, number: Number, message: SimulatedMessage) -> str | None:
    """Click a link of a marketing message; return the click's id, or None for a message of more than 7 days ago.

    Source: the operator's page "Tracking click events".
    """
    now_ms = state.clock.now_ms()
    if message.at_ms < now_ms - _CLICKS_FOR_MS:
        return None
    click_id = f"IwAR{state.ids.digits(20)}"
    template_id = find_template_id(state, message.phone_number_id, message.body) or ""
    value = _click_value(number, click_id, f"AI@{state.ids.digits(20)}", now_ms)

    def write(transaction: Transaction) -> None:
        transaction.save(MARKETING_CLICKS, now_ms, click_id, template_id)
        transaction.send(state.outbox.account_update(number.waba_id, now_ms, "messages", value))

    await state.transact(write)
    return click_id


def _count_clicks(state: SimulatorServices, template_id: str, *, from_ms: int, until_ms: int) -> int:
    """Return the number of clicks on links of a template's messages in a period."""
    return sum(from_ms <= at_ms < until_ms for at_ms in state.values(MARKETING_CLICKS, template_id).values())


def _click_value(number: Number, click_id: str, tracking_token: str, now_ms: int) -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": number.phone_number, "phone_number_id": number.phone_number_id},
        "user_actions": [
            {
                "action_type": "marketing_messages_link_click",
                "timestamp": str(now_ms // 1000),
                "marketing_messages_link_click_data": {
                    "click_component": "CTA",
                    "click_id": click_id,
                    "tracking_token": tracking_token,
                },
            }
        ],
    }


AD_PREFIX: Final = "120"
"""The first digits of an ad's id; the rest is the template's id."""
_PREFIX: Final = "marketing_messages_"
_DEFAULT_PRESET: Final = "last_30d"
_UNIX_EPOCH: Final = datetime.date(1970, 1, 1)
_DAY: Final = datetime.timedelta(days=1)

Period = tuple[datetime.date, datetime.date]
"""The first and the last day."""


@dataclass(frozen=True)
class SimulatedAd:
    """The ad of a marketing template. Source: the operator's page "Onboard"."""

    template: SimulatedTemplate


@dataclass(frozen=True)
class MarketingCounts:
    """Counts of the marketing messages of one template in a period."""

    sent: int
    delivered: int
    read: int
    clicked: int


async def read_insights(
    state: SimulatorServices, template: SimulatedTemplate, query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the statistics of a template's marketing messages in a period, each as text.

    Raises GraphApiError: 100, an unknown period or field. Source: the operator's pages "Viewing metrics" and "Insights
    API".
    """
    today = _UNIX_EPOCH + datetime.timedelta(days=state.clock.now_ms() // 1000 // DAY_S)
    preset = query.get("date_preset") or _DEFAULT_PRESET
    if preset not in _PERIODS:
        raise bad_parameter(f"Param date_preset must be one of {{{', '.join(_PERIODS)}}}.")
    first, last = _PERIODS[preset](today)
    names = [name.strip() for name in query.get("fields", "").split(",") if name.strip()]
    for name in names:
        if not name.startswith(_PREFIX):
            raise bad_parameter(f"{name} is not valid for fields param.")
    counts = await _count(state, template, first, last)
    shown = {
        name: _METRICS[name.removeprefix(_PREFIX)](counts) for name in names if name.removeprefix(_PREFIX) in _METRICS
    }
    return {**shown, "date_start": first.isoformat(), "date_stop": last.isoformat()}


async def _count(
    state: SimulatorServices, template: SimulatedTemplate, first: datetime.date, last: datetime.date
) -> MarketingCounts:
    from_s, until_s = ((day - _UNIX_EPOCH).days * DAY_S for day in (first, last + _DAY))
    points = await count_data_points(state, [template], start_s=from_s, end_s=until_s, mark=MARKETING_MARK)
    clicked = _count_clicks(state, template.template_id, from_ms=from_s * 1000, until_ms=until_s * 1000)
    sent, delivered, read = (
        sum(count) for count in zip(*((each.sent, each.delivered, each.read) for _, _, each in points), strict=True)
    )
    return MarketingCounts(sent, delivered, read, clicked)


def _rate(part: int, whole: int) -> str:
    return f"{part / whole:.6g}" if whole else "0"


# fmt: off
_METRICS: Final[dict[str, Callable[[MarketingCounts], str]]] = {  # Source: ledger 1.5, insights; nothing costs here
    "sent":                    lambda counts: str(counts.sent),
    "delivered":               lambda counts: str(counts.delivered),
    "delivery_rate":           lambda counts: _rate(counts.delivered, counts.sent),
    "read":                    lambda counts: str(counts.read),
    "read_rate":               lambda counts: _rate(counts.read, counts.delivered),
    "link_btn_click":          lambda counts: str(counts.clicked),
    "link_btn_click_rate":     lambda counts: _rate(counts.clicked, counts.delivered),
    "spend":                   lambda _: "0",
    "cost_per_delivered":      lambda _: "0",
    "cost_per_link_btn_click": lambda _: "0",
}
# fmt: on


def _last_days(count: int) -> Callable[[datetime.date], Period]:
    """Return the days before today."""
    return lambda today: (today - count * _DAY, today - _DAY)


def _month(today: datetime.date) -> Period:
    return today.replace(day=1), today


def _last_month(today: datetime.date) -> Period:
    last = today.replace(day=1) - _DAY
    return last.replace(day=1), last


def _quarter_start(today: datetime.date) -> datetime.date:
    return today.replace(month=(today.month - 1) // 3 * 3 + 1, day=1)


def _last_quarter(today: datetime.date) -> Period:
    last = _quarter_start(today) - _DAY
    return _quarter_start(last), last


def _week_start(today: datetime.date, first_weekday: int) -> datetime.date:
    return today - (today.weekday() - first_weekday) % 7 * _DAY


def _last_week(first_weekday: int) -> Callable[[datetime.date], Period]:
    def period(today: datetime.date) -> Period:
        start = _week_start(today, first_weekday)
        return start - 7 * _DAY, start - _DAY

    return period


# fmt: off
_MONDAY, _SUNDAY = 0, 6
_MAXIMUM: Final = _last_days(90)  # the operator's is longer: nothing here is as old
_PERIODS: Final[dict[str, Callable[[datetime.date], Period]]] = {  # Source: the operator's page "Insights API"
    "today":               lambda today: (today, today),
    "yesterday":           _last_days(1),
    "this_month":          _month,
    "last_month":          _last_month,
    "this_quarter":        lambda today: (_quarter_start(today), today),
    "last_quarter":        _last_quarter,
    "this_year":           lambda today: (today.replace(month=1, day=1), today),
    "last_year":           lambda today: (datetime.date(today.year - 1, 1, 1), datetime.date(today.year - 1, 12, 31)),
    "maximum":             _MAXIMUM,
    "data_maximum":        _MAXIMUM,
    "last_3d":             _last_days(3),
    "last_7d":             _last_days(7),
    "last_14d":            _last_days(14),
    "last_28d":            _last_days(28),
    "last_30d":            _last_days(30),
    "last_90d":            _last_days(90),
    "last_week_mon_sun":   _last_week(_MONDAY),
    "last_week_sun_sat":   _last_week(_SUNDAY),
    "this_week_mon_today": lambda today: (_week_start(today, _MONDAY), today),
    "this_week_sun_today": lambda today: (_week_start(today, _SUNDAY), today),
}
# fmt: on
