"""The routes of the admin API: `/admin/…`, JSON, its own credential, loopback unless set."""

from functools import partial
from typing import Final

from starlette.routing import Route

from waypost.admin import (
    app_links,
    apps,
    callbacks,
    credentials,
    logs,
    messages,
    operator_accounts,
    operator_switch,
    partners,
    personal_data,
    secret_key,
    waits,
)
from waypost.admin.authorisation import AdminGate
from waypost.admin.doctor import checks
from waypost.admin.operation import AdminRoute
from waypost.admin.provisioning import AdminContext
from waypost.admin.setup import apply

ROUTES: Final[tuple[AdminRoute, ...]] = (
    *partners.operation.rows,
    *credentials.operation.rows,
    *apps.operation.rows,
    *app_links.operation.rows,
    *messages.operation.rows,
    *waits.operation.rows,
    *logs.operation.rows,
    *personal_data.operation.rows,
    *operator_accounts.operation.rows,
    *operator_switch.operation.rows,
    *checks.operation.rows,
    *secret_key.operation.rows,
    *apply.operation.rows,
    *callbacks.operation.rows,
)
"""The first match is used."""
PATH_PARAMETERS: Final = {
    # collection and parameter          meaning
    "partners/{partner_id}": "Id of the partner.",
    "client-secrets/{secret_id}": "Id, as `waypost partner secrets` lists it.",
    "api-keys/{key_id}": "Id, as `waypost partner keys` lists it.",
    "universal-tokens/{token_id}": "Id, as `waypost partner tokens` lists it.",
    "apps/{app_id}": "Id of the app.",
    "app-links/{link_id}": "Id, as `waypost app links` lists it.",
    "operator-accounts/{account_id}": "A name; also the end of its webhook path.",
    "business-accounts/{account_id}": "The operator's id; wabaId on the wire.",
    "subscriptions/{subscription_id}": "Id of the subscription.",
    "callbacks/{callback_id}": "Id of the callback.",
    "messages/{message_id}": "Our id of the message, or the operator's.",
    "trace/{message_id}": "Our id of the message, or the operator's.",
    "requests/{request_id}": "Id of the request in the log, or the X-Request-Id of its response.",
    "dead-letters/{position}": "Position of the job, as `waypost dead-letter list` lists it.",
}
"""The help of commands has these."""


def make_admin_routes(context: AdminContext, gate: AdminGate) -> list[Route]:
    """Return every route of the admin API, guarded by the gate."""
    return [Route(row.path, gate.guard(row, partial(row.respond, context)), methods=[row.method]) for row in ROUTES]
