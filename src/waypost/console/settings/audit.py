"""The audit log: a partner's own entries in words; all entries for the administrator."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from waypost.console.list_filters import FilterContext, FilterField, FilterForm, ListFilter, Members, unknown_value
from waypost.console.lists import ListPage, ListQuery, ListRows
from waypost.console.page_request import PageRequest
from waypost.console.requests import visible_partner
from waypost.console.web.forms import parse_number
from waypost.console.web.zones import iso_time
from waypost.store.accounts.audit_log import ADMIN_ACTOR, ANONYMOUS_ACTOR, AuditEntry, AuditFilter

# fmt: off
API_ACTIONS: Final[Mapping[str, str]] = {  # method and path template, and what was done
    # The admin API: `waypost.admin.routes`
    "POST /admin/partners":                                                "Create a partner",
    "POST /admin/partners/{partner_id}/password":                          "Set the password of a partner",
    "PUT /admin/partners/{partner_id}/quotas":                             "Change the quotas of a partner",
    "PUT /admin/partners/{partner_id}/retention":                          "Change the retention periods of a partner",
    "POST /admin/partners/{partner_id}/client-secrets":                    "Create a client secret",
    "DELETE /admin/partners/{partner_id}/client-secrets/{secret_id}":      "Revoke a client secret",
    "POST /admin/partners/{partner_id}/api-keys":                          "Create an API key",
    "DELETE /admin/partners/{partner_id}/api-keys/{key_id}":               "Revoke an API key",
    "POST /admin/partners/{partner_id}/universal-tokens":                  "Create a universal token",
    "DELETE /admin/partners/{partner_id}/universal-tokens/{token_id}":     "Revoke a universal token",
    "POST /admin/api-keys/revoke":                                         "Revoke an API key",
    "POST /admin/apps":                                                    "Create an app",
    "POST /admin/apps/{app_id}/connect":                                   "Connect an app to its number",
    "POST /admin/apps/{app_id}/onboard":                                   "Begin the onboarding of an app",
    "POST /admin/apps/{app_id}/token/revoke":                              "Replace an app token",
    "POST /admin/app-links":                                               "Offer the app of a customer",
    "POST /admin/app-links/{link_id}/decide":                              "Decide a request to link an app",
    "PUT /admin/apps/{app_id}/rates":                                      "Set rate limits of an app",
    "PUT /admin/apps/{app_id}/operator":                                   "Switch an app to another operator account",
    "POST /admin/dead-letters/{position}/retry":                           "Retry a dead letter",
    "DELETE /admin/dead-letters/{position}":                               "Delete a dead letter",
    "POST /admin/trace/{message_id:path}/reveal":                          "Show the content of a message",
    "POST /admin/recipients/export":                                       "Export the data of a recipient",
    "POST /admin/recipients/erase":                                        "Erase the data of a recipient",
    "POST /admin/store/compact":                                           "Compact the store",
    "PUT /admin/operator-accounts/{account_id}":                           "Save an operator account",
    "POST /admin/business-accounts":                                       "Save a business account",
    "POST /admin/business-accounts/{account_id}/subscribe":                "Subscribe to a business account",
    "POST /admin/secret/rotate":                                           "Replace the instance key",
    "POST /admin/setup":                                                   "Apply a setup file",
    "POST /admin/subscriptions/{subscription_id}/check":                   "Send a ping to an endpoint",
    "POST /admin/subscriptions/{subscription_id}/resume":                  "Resume a callback subscription",
    "POST /admin/subscriptions/{subscription_id}/retry":                   "Retry waiting callbacks",
    "GET /admin/subscriptions/{subscription_id}/key":                      "Show a signing key",
    "POST /admin/subscriptions/{subscription_id}/key/rotate":              "Replace a signing key",
    "POST /admin/callbacks/replay":                                        "Replay callbacks",
    "POST /admin/callbacks/{callback_id}/reveal":                          "Show the texts of a callback",
    # The partner API: `waypost.api.asgi`
    "POST /partner/app":                                                   "Create a sandbox app",
    "PUT /partner/app/{app_id}":                                           "Change an app",
    "DELETE /partner/app/{app_id}":                                        "Delete an app",
    "POST /partner/account/api/appLink":                                   "Get a credential of an app",
    "POST /partner/{partner_id}/app-link/app-token":                       "Get a credential of an app",
    "POST /partner/{partner_id}/app-link/partner-link-token":              "Get or replace the linking token",
    "POST /partner/{partner_id}/app-link/status":                          "Decide a request to link an app",
    "POST /partner/{partner_id}/auth/token":                               "Create a universal token",
    "POST /partner/{partner_id}/auth/revoke":                              "Revoke a universal token",
    "POST /partner/app/{app_id}/token":                                    "Create an app token that expires",
    "POST /partner/app/{app_id}/token/revoke":                             "Revoke an app token that expires",
    "POST /partner/app/{app_id}/apikey":                                   "Create an additional app key",
    "POST /partner/app/{app_id}/apikey/revoke":                            "Revoke an additional app key",
    "DELETE /partner/app/{app_id}/apikey/{key_id}":                        "Revoke an additional app key",
}
_ACTORS: Final = {
    ADMIN_ACTOR:     "Administrator",
    ANONYMOUS_ACTOR: "No valid token",
}
# fmt: on
_INTERFACES: Final = (("/admin/", "admin API"), ("/partner/", "partner API"), ("", "console"))
"""The interface of an action, by the beginning of its path."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry as it is shown."""

    entry: AuditEntry
    text: str  # what was done
    actor: str
    interface: str  # where
    subject: list[tuple[str, str]]  # names and values of what it concerned
    reason: str  # why it was rejected, or a detail


def make_audit_row(entry: AuditEntry, app_names: Mapping[str, str], actions: Mapping[str, str]) -> AuditRow:
    """Return an entry in words.

    Args:
        app_names: names of apps by their ids.
        actions: what each action did, by method and path template.
    """
    path = entry.action.partition(" ")[2]
    return AuditRow(
        entry=entry,
        text=actions.get(entry.action)
        or ("Search in hidden texts" if entry.status < 400 else "Call without permission"),
        actor=_ACTORS.get(entry.actor, entry.actor),
        interface=next(name for prefix, name in _INTERFACES if path.startswith(prefix)),
        subject=[_describe_id(part, app_names) for part in entry.subject.split(" ") if part],
        reason=re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", entry.detail).lower(),
    )


def _describe_id(part: str, app_names: Mapping[str, str]) -> tuple[str, str]:
    """Return the name and the value of an id such as `app_id=0199…`."""
    name, _, value = part.rpartition("=") if "=" in part else ("", "", part)
    label = name.removesuffix("_id").replace("_", " ")
    return label, app_names.get(value, value) if name == "app_id" else value


def _parse_actor(text: str, _context: FilterContext) -> Members:
    stored = {label.lower(): actor for actor, label in _ACTORS.items()}
    return {"actor": stored.get(text.lower(), text)}


_OUTCOMES: Final = {"done": False, "rejected": True}
_OUTCOME_OPTIONS: Final = (("", "All"), ("done", "Done"), ("rejected", "Rejected"))


def _parse_outcome(text: str, _context: FilterContext) -> Members:
    if text not in _OUTCOMES:
        raise ValueError(unknown_value("outcome", list(_OUTCOMES)))
    return {"rejected": _OUTCOMES[text]}


async def _read(request: PageRequest, filters: ListFilter, query: ListQuery) -> ListRows:
    search = replace(filters.search, partner_id=visible_partner(request), before_id=parse_number(query.before))
    entries = await request.services.audit.page(search, query.at_most + 1)
    shown = entries[: query.at_most]
    return ListRows(_rows(request, shown), str(shown[-1].id) if len(entries) > query.at_most else "")


async def _find(request: PageRequest, ids: Sequence[str]) -> Sequence[AuditRow]:
    partner_id = visible_partner(request)
    numbers = {number for number in map(parse_number, ids) if number is not None}
    found: list[AuditEntry] = []
    for number in sorted(numbers, reverse=True):
        entries = await request.services.audit.page(AuditFilter(partner_id=partner_id, before_id=number + 1), 1)
        found += [entry for entry in entries if entry.id == number]
    return _rows(request, found)


def _rows(request: PageRequest, entries: Sequence[AuditEntry]) -> list[AuditRow]:
    app_names = {app.id: app.name for app in request.apps}
    return [make_audit_row(entry, app_names, request.tools.table.audited_actions) for entry in entries]


async def _values(request: PageRequest, _filters: ListFilter) -> Mapping[str, Any]:
    return {"shows_all": visible_partner(request) is None}


AUDIT: Final = ListPage(
    name="audit",
    path="/settings/audit",
    title="Audit log",
    noun="entries",
    page="settings/audit.html",
    macros="settings/audit_parts.html",
    columns=("Action", "By", "Outcome", "Time"),
    form=FilterForm(
        (
            FilterField("actor", "By", _parse_actor, kind="search", placeholder="E-mail address, or Administrator"),
            FilterField("outcome", "Outcome", _parse_outcome, kind="select", options=_OUTCOME_OPTIONS),
        ),
        AuditFilter,
        {"from": "since_ms", "until": "until_ms"},
    ),
    read=_read,
    find=_find,
    element_id=lambda row: f"a-{row.entry.id}",
    cursor=lambda row: str(row.entry.id),
    export={
        "id": lambda row: row.entry.id,
        "time": lambda row: iso_time(row.entry.at_ms),
        "text": lambda row: row.text,
        "action": lambda row: row.entry.action,
        "actor": lambda row: row.actor,
        "remote_address": lambda row: row.entry.remote_address,
        "subject": lambda row: row.entry.subject,
        "status": lambda row: row.entry.status,
        "reason": lambda row: row.reason,
    },
    values=_values,
)
