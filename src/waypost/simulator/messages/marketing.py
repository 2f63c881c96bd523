"""The API for marketing messages: who may use it, clicks on links, and the statistics of their templates."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.clock import DAY_MS
from waypost.simulator.apis.errors import bad_parameter, message_error
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.records import MARKETING
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.tables.messages import SimulatedMessage
from waypost.simulator.templates.analytics import DAY_S, count_data_points, find_template_id
from waypost.simulator.templates.template import SimulatedTemplate

MARKETING_STATUSES: Final = ("INELIGIBLE", "ELIGIBLE", "ONBOARDED")  # Source: facts 1, "WABA node"
MARKETING_CLICKS: Final = StoredKind("marketing_click", int)
"""Times of clicks on links of marketing messages: of a template, by the click's id."""
MARKETING_CATEGORY: Final = "marketing_lite"
"""The category of the price of a message that was sent through this API. Source: facts 7.3."""
_POLICIES: Final = ("CLOUD_API_FALLBACK", "STRICT")  # Source: the operator's page "Send Marketing Messages"


def find_marketing_status(state: SimulatorState, waba_id: str) -> str:
    """Return one of `MARKETING_STATUSES`; an account may accept the terms until the control API says otherwise."""
    return str(state.record(waba_id, MARKETING).get("status", "ELIGIBLE"))


def check_marketing_request(
    state: SimulatorState, waba_id: str, request: dict[str, Any], template: SimulatedTemplate | None
) -> bool:
    """Check a request, whose content has been checked.

    Returns:
        True if the message is sent through this API; false if it is sent as any other, because the account's owner has
        not accepted the terms.

    Raises:
        GraphApiError: 134100, no marketing template; 100, an unknown product policy or a sharing that is no boolean;
            131055, a strict policy without accepted terms.

    Source: the operator's page "Send Marketing Messages"; facts 5.2.
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


async def click_link(state: SimulatorState, number: Number, message: SimulatedMessage) -> str | None:
    """Click a link of a marketing message; return the click's id, or None for a message of more than 7 days ago.

    Source: the operator's page "Tracking click events".
    """
    now_ms = state.clock.now_ms()
    if message.at_ms < now_ms - _CLICKS_FOR_MS:
        return None
    click_id = f"IwAR{state.ids.digits(20)}"
    template_id = find_template_id(state, message) or ""
    action = {
        "action_type": "marketing_messages_link_click",
        "timestamp": str(now_ms // 1000),
        "marketing_messages_link_click_data": {
            "click_component": "CTA",
            "click_id": click_id,
            "tracking_token": f"AI@{state.ids.digits(20)}",
        },
    }

    def write(transaction: Transaction) -> None:
        transaction.save(MARKETING_CLICKS, now_ms, click_id, template_id)
        transaction.notify(number.waba_id, "messages", number.webhook_value(user_actions=[action]), at_ms=now_ms)

    await state.transact(write)
    return click_id


_PREFIX: Final = "marketing_messages_"
_DEFAULT_PRESET: Final = "last_30d"
_UNIX_EPOCH: Final = datetime.date(1970, 1, 1)
_DAY: Final = datetime.timedelta(days=1)


@dataclass(frozen=True)
class SimulatedAd:
    """The ad of a marketing template. Source: the operator's page "Onboard"."""

    template: SimulatedTemplate


async def read_insights(state: SimulatorState, template: SimulatedTemplate, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the statistics of a template's marketing messages in a period, each as text; nothing costs here.

    Raises:
        GraphApiError: 100, an unknown period or field.

    Source: the operator's pages "Viewing metrics" and "Insights API"; ledger 1.5, insights.
    """
    periods = _list_periods(_UNIX_EPOCH + datetime.timedelta(days=state.clock.now_ms() // 1000 // DAY_S))
    preset = query.get("date_preset") or _DEFAULT_PRESET
    if preset not in periods:
        raise bad_parameter(f"Param date_preset must be one of {{{', '.join(periods)}}}.")
    first, last = periods[preset]
    names = [name.strip() for name in query.get("fields", "").split(",") if name.strip()]
    for name in names:
        if not name.startswith(_PREFIX):
            raise bad_parameter(f"{name} is not valid for fields param.")
    from_s, until_s = ((day - _UNIX_EPOCH).days * DAY_S for day in (first, last + _DAY))
    points = await count_data_points(state, [template], start_s=from_s, end_s=until_s, mark=MARKETING_MARK)
    counts = {name: sum(getattr(each, name) for _, _, each in points) for name in ("sent", "delivered", "read")}
    clicks = state.values(MARKETING_CLICKS, template.template_id).values()
    counts["link_btn_click"] = sum(from_s * 1000 <= at_ms < until_s * 1000 for at_ms in clicks)
    shares = {name: (counts[part], counts[whole]) for name, (part, whole) in _RATES.items()}
    metrics = dict.fromkeys(_COSTS, "0") | {name: str(count) for name, count in counts.items()}
    metrics |= {name: f"{part / whole:.6g}" if whole else "0" for name, (part, whole) in shares.items()}
    shown = {name: metrics[name.removeprefix(_PREFIX)] for name in names if name.removeprefix(_PREFIX) in metrics}
    return {**shown, "date_start": first.isoformat(), "date_stop": last.isoformat()}


_RATES: Final = {
    "delivery_rate": ("delivered", "sent"),
    "read_rate": ("read", "delivered"),
    "link_btn_click_rate": ("link_btn_click", "delivered"),
}
_COSTS: Final = ("spend", "cost_per_delivered", "cost_per_link_btn_click")


def _list_periods(today: datetime.date) -> dict[str, tuple[datetime.date, datetime.date]]:
    """Return the first and the last day of each period. Source: the operator's page "Insights API"."""
    yesterday, month, year = today - _DAY, today.replace(day=1), today.replace(month=1, day=1)
    quarter = month.replace(month=(today.month - 1) // 3 * 3 + 1)
    month_before, quarter_before, year_before = month - _DAY, quarter - _DAY, year - _DAY
    monday, sunday = today - today.weekday() * _DAY, today - (today.weekday() + 1) % 7 * _DAY
    maximum = (today - 90 * _DAY, yesterday)  # the operator's is longer: nothing here is as old
    return {
        "today": (today, today),
        "yesterday": (yesterday, yesterday),
        "this_month": (month, today),
        "last_month": (month_before.replace(day=1), month_before),
        "this_quarter": (quarter, today),
        "last_quarter": (quarter_before.replace(month=quarter_before.month - 2, day=1), quarter_before),
        "this_year": (year, today),
        "last_year": (year_before.replace(month=1, day=1), year_before),
        "maximum": maximum,
        "data_maximum": maximum,
        **{f"last_{count}d": (today - count * _DAY, yesterday) for count in (3, 7, 14, 28, 30, 90)},
        "last_week_mon_sun": (monday - 7 * _DAY, monday - _DAY),
        "last_week_sun_sat": (sunday - 7 * _DAY, sunday - _DAY),
        "this_week_mon_today": (monday, today),
        "this_week_sun_today": (sunday, today),
    }
