"""The audit log: a partner's own entries in words; all entries for the administrator."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from waypost.console.list_filters import FilterContext, FilterField, FilterForm, ListFilter, Members, unknown_value
from waypost.console.lists import ListPage, ListQuery, ListRows
from waypost.console.page_tools import PageTools
from waypost.console.requests import visible_partner
from waypost.console.web.page_request import PageRequest
from waypost.console.web.zones import iso_time
from waypost.store.accounts.audit_log import ADMIN_ACTOR, ANONYMOUS_ACTOR, AuditEntry, AuditFilter

# fmt: off
AUDITED_ACTIONS: Final[Mapping[str, str]] = {  # method and path template, and what was done
    # The console: its route tables
    "POST /apps/{app_id}/dead-letters/{position}/retry":                   "Retry a dead letter",
    "POST /apps/{app_id}/callbacks/new":                                   "Create a callback subscription",
    "POST /apps/{app_id}/callbacks/subscriptions/{subscription_id}":       "Change a callback subscription",
    "POST /apps/{app_id}/callbacks/subscriptions/{subscription_id}/check": "Send a ping to an endpoint",
    "POST /apps/{app_id}/callbacks/subscriptions/{subscription_id}/pause": "Pause a callback subscription",
    "POST /apps/{app_id}/callbacks/subscriptions/{subscription_id}/resume": "Resume a callback subscription",
    "POST /apps/{app_id}/callbacks/subscriptions/{subscription_id}/retry": "Retry waiting callbacks",
    "POST /apps/{app_id}/callbacks/subscriptions/{subscription_id}/key":   "Show a signing key",
    "POST /apps/{app_id}/callbacks/subscriptions/{subscription_id}/rotate": "Replace a signing key",
    "POST /apps/{app_id}/callbacks/subscriptions/{subscription_id}/delete": "Delete a callback subscription",
    "POST /apps/{app_id}/callbacks/replay-selected":                       "Replay selected callbacks",
    "POST /apps/{app_id}/callbacks/deliveries/{callback_id}/body":         "Download the body of a callback",
    "POST /apps/{app_id}/callbacks/deliveries/{callback_id}/reveal":       "Show the texts of a callback",
    "POST /apps/{app_id}/callbacks/deliveries/{callback_id}/replay":       "Replay a callback",
    "POST /apps/{app_id}/callbacks/replay":                                "Replay callbacks",
    "POST /partners":                                                      "Create a partner",
    "POST /partners/{partner_id}/enter":                                   "Continue as another partner",
    "POST /try/partner-token":                                             "Use a partner token in the API reference",
    "POST /apps/{app_id}/try-token":                                       "Use an app token in the API reference",
    "POST /settings/sessions/end-others":                                  "End all other sessions",
    "POST /settings/retention":                                            "Change retention periods",
    "POST /settings/quotas":                                               "Change quotas",
    "POST /settings/password":                                             "Change the password",
    "POST /settings/secrets":                                              "Create a client secret",
    "POST /settings/secrets/{secret_id}/revoke":                           "Revoke a client secret",
    "POST /settings/keys":                                                 "Create an API key",
    "POST /settings/keys/{key_id}/revoke":                                 "Revoke an API key",
    "POST /settings/apps":                                                 "Create a sandbox app",
    "POST /apps/{app_id}/settings":                                        "Change an app",
    "POST /apps/{app_id}/settings/delete":                                 "Delete an app",
    "POST /apps/{app_id}/settings/token":                                  "Show an app token",
    "POST /apps/{app_id}/settings/token/renew":                            "Replace an app token",
    "POST /apps/{app_id}/settings/keys":                                   "Create an additional app key",
    "POST /apps/{app_id}/settings/keys/{key_id}/revoke":                   "Revoke an additional app key",
    "POST /apps/{app_id}/settings/tokens":                                 "Create an app token that expires",
    "POST /apps/{app_id}/settings/tokens/{key_id}/revoke":                 "Revoke an app token that expires",
    "POST /apps/{app_id}/settings/rates":                                  "Set a rate limit of an app",
    "POST /apps/{app_id}/settings/rates/reset":                            "Reset a rate limit of an app",
    "POST /apps/{app_id}/settings/rates/reset-all":                        "Reset all rate limits of an app",
    "POST /apps/{app_id}/settings/operator":                               "Switch an app to another operator account",
    "POST /settings/personal-data/export":                                 "Export the data of a recipient",
    "POST /settings/personal-data/erase":                                  "Erase the data of a recipient",
    "POST /settings/administrator":                                        "Start to act as administrator",
    "POST /settings/administrator/end":                                    "End acting as administrator",
    "POST /simulator/templates/{template_id}/{act}":                       "Act on a template as the operator",
    "POST /simulator/faults/new/{on}/{kind}":                              "Arm a fault",
    "POST /simulator/faults/presets/{key}":                                "Arm a preset of faults",
    "POST /simulator/faults/presets/{key}/disarm":                         "Disarm a preset of faults",
    "POST /simulator/faults/json":                                         "Arm a fault given as JSON",
    "POST /simulator/faults/disarm":                                       "Disarm all faults",
    "POST /simulator/faults/{fault_id}/disarm":                            "Disarm a fault",
    "POST /simulator/clock/next":                                          "Advance the clock to the next due time",
    "POST /simulator/clock/advance":                                       "Advance the clock",
    "POST /simulator/clock/freeze":                                        "Freeze the clock",
    "POST /simulator/clock/run":                                           "Set the speed of the clock",
    "POST /simulator/fleets":                                              "Create a fleet",
    "POST /simulator/fleets/{name}/drop":                                  "Delete a fleet",
    "POST /simulator/snapshots":                                           "Save a snapshot",
    "POST /simulator/snapshots/{name}/load":                               "Load a snapshot",
    "POST /simulator/snapshots/{name}/drop":                               "Delete a snapshot",
    "POST /simulator/reset":                                               "Reset to the initial state",
    "POST /simulator/rules":                                               "Change the rules of the simulator",
    "POST /simulator/review-delay":                                        "Change how templates are reviewed",
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
    "POST /admin/apps/{app_id}/token/revoke":                              "Replace an app token",
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
    """One entry as it is shown.

    Attributes:
        text: what was done.
        interface: where.
        subject: names and values of what it concerned.
        reason: why it was rejected, or a detail.
    """

    entry: AuditEntry
    text: str
    actor: str
    interface: str
    subject: list[tuple[str, str]]
    reason: str


def make_audit_row(entry: AuditEntry, app_names: Mapping[str, str]) -> AuditRow:
    """Return an entry in words.

    Args:
        entry: as stored.
        app_names: names of apps by their ids.
    """
    path = entry.action.partition(" ")[2]
    return AuditRow(
        entry=entry,
        text=AUDITED_ACTIONS.get(entry.action)
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


_OUTCOMES: Final = {"done": False, "rejected": True}


def _parse_outcome(text: str, _context: FilterContext) -> Members:
    if text not in _OUTCOMES:
        raise ValueError(unknown_value("outcome", list(_OUTCOMES)))
    return {"rejected": _OUTCOMES[text]}


async def _read(tools: PageTools, page_request: PageRequest, filters: ListFilter, query: ListQuery) -> ListRows:
    is_number = query.before.isascii() and query.before.isdecimal() and len(query.before) < 19
    search = replace(
        filters.search,
        partner_id=visible_partner(tools, page_request),
        before_id=int(query.before) if is_number else None,
    )
    entries = await tools.services.audit.page(search, query.at_most + 1)
    shown = entries[: query.at_most]
    return ListRows(_rows(page_request, shown), str(shown[-1].id) if len(entries) > query.at_most else "")


async def _find(tools: PageTools, page_request: PageRequest, ids: Sequence[str]) -> Sequence[AuditRow]:
    partner_id = visible_partner(tools, page_request)
    numbers = sorted(
        {int(text) for text in ids if text.isascii() and text.isdecimal() and len(text) < 19}, reverse=True
    )
    found: list[AuditEntry] = []
    for number in numbers:
        entries = await tools.services.audit.page(AuditFilter(partner_id=partner_id, before_id=number + 1), 1)
        found += [entry for entry in entries if entry.id == number]
    return _rows(page_request, found)


def _rows(page_request: PageRequest, entries: Sequence[AuditEntry]) -> list[AuditRow]:
    app_names = {app.id: app.name for app in page_request.apps}
    return [make_audit_row(entry, app_names) for entry in entries]


async def _values(tools: PageTools, page_request: PageRequest, _filters: ListFilter) -> Mapping[str, Any]:
    return {"shows_all": visible_partner(tools, page_request) is None}


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
            FilterField(
                name="outcome",
                label="Outcome",
                kind="select",
                parse=_parse_outcome,
                options=(("", "All"), ("done", "Done"), ("rejected", "Rejected")),
            ),
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
