"""The numbers of a business account: each app's is there, registered, and as fast as we believe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from waypost.admin.actions import Office
from waypost.admin.asking import NotTold, ask_list
from waypost.admin.doctor.finding import Finding, State, ok, wrong
from waypost.admin.doctor.refusals import refused
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.phone_number import read_phone_number
from waypost.operators.contract import Ask


@dataclass(frozen=True, slots=True)
class _Row:
    field: str
    good: frozenset[str]
    bad: State
    what: str
    remedy: str


# fmt: off
_FIELDS: Final = (  # Source: operator's facts 1, "Phone node", and 8; its page "Phone numbers"
    #    field                       values that are good                               else           what it is            remedy
    _Row("platform_type",            frozenset({"CLOUD_API"}),                          State.WRONG,   "platform",           "register the number for the Cloud API in the operator's console"),
    _Row("status",                   frozenset({"CONNECTED"}),                          State.WRONG,   "status",             "register or verify the number in the operator's console"),
    _Row("code_verification_status", frozenset({"VERIFIED"}),                           State.WARNING, "verification",       "verify the number by code in the operator's console"),
    _Row("name_status",              frozenset({"APPROVED", "AVAILABLE_WITHOUT_REVIEW"}), State.WARNING, "display name",     "set a display name in the operator's console"),
    _Row("quality_rating",           frozenset({"GREEN", "UNKNOWN", "NA"}),             State.WARNING, "quality",            "send less that is not wanted; the messaging limit follows the quality"),
)
_OF_STATUS: Final = {  # what to do about one, where it is not to register the number
    "BANNED":       "read the operator's notices, and ask for a review in its console",
    "RESTRICTED":   "read the operator's notices, and ask for a review in its console",
    "FLAGGED":      "send less that is not wanted: the number has a week to recover its quality",
    "RATE_LIMITED": "wait: it may message no further people today",
    "DELETED":      "add the number again in the operator's console, or give the app another: waypost app connect",
    "MIGRATED":     "give the app the number's new id: waypost app connect",
}
THROUGHPUT: Final = {  # messages a second. Source: operator's facts 8
    "STANDARD": 80,
    "HIGH":     1000,
}
# fmt: on


async def look_at_numbers(
    office: Office, account: OperatorAccount, owner: BusinessAccount, apps: Sequence[App]
) -> list[Finding]:
    """One line for each app's number; several where several things are not as they should be."""
    about = f"{account.id}: numbers of {owner.id}"
    try:
        nodes = await ask_list(office.operator, account, Ask.PHONE_NUMBERS, owner.id)
    except NotTold as error:
        return [refused(about, account.id, error)]
    by_id = {str(node.get("id")): node for node in nodes}
    return [
        finding for app in apps for finding in _look_at(office, account, app, by_id.get(app.phone_number_id), by_id)
    ]


def _look_at(
    office: Office, account: OperatorAccount, app: App, node: dict[str, Any] | None, by_id: dict[str, dict[str, Any]]
) -> list[Finding]:
    about = f"{account.id}: number +{app.phone_number} of {app.name}"
    connect = f"waypost app connect {app.id} NUMBER NUMBER_ID {app.business_account_id}"
    if node is None:
        there = ", ".join(f"{one} ({_shown(two)})" for one, two in by_id.items()) or "none"
        text = f"the operator has no number {app.phone_number_id}; it has {there}"
        return [wrong(about, text, connect)]
    findings: list[Finding] = []
    if read_phone_number(_shown(node)) not in (None, app.phone_number):
        text = f"{app.phone_number_id} is {_shown(node)} at the operator"
        findings.append(wrong(about, text, connect))
    for row in _FIELDS:
        value = str(node.get(row.field) or "")
        if value and value not in row.good:
            remedy = _OF_STATUS.get(value, row.remedy)
            findings.append(Finding(about, row.bad, f"its {row.what} is {value}", remedy))
    findings += _pace(office, app, node, about)
    if findings:
        return findings
    limit = node.get("whatsapp_business_manager_messaging_limit") or "not told"
    quality, level = node.get("quality_rating") or "not told", _level(node) or "not told"
    text = f"connected; quality {quality}, throughput {level}, messaging limit {limit}"
    return [ok(about, text)]


def _pace(office: Office, app: App, node: dict[str, Any], about: str) -> list[Finding]:
    """Our pace must not be above the operator's: what is above comes back with code 130429."""
    ours, theirs = app.per_second or office.per_second, THROUGHPUT.get(_level(node))
    if theirs is None or ours <= theirs:
        return []
    text = f"we send {ours} a second, and the operator takes {theirs}"
    return [wrong(about, text, f"set per_second of the app, or WAYPOST_PER_SECOND, to {theirs}")]


def _level(node: dict[str, Any]) -> str:
    given = node.get("throughput")
    return str(cast(dict[str, Any], given).get("level") or "") if isinstance(given, dict) else ""


def _shown(node: dict[str, Any]) -> str:
    return str(node.get("display_phone_number") or "")
