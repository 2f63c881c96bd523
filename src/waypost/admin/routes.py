"""The routes of the admin API: `/admin/…`, JSON, its own credential, loopback unless set."""

from functools import partial
from typing import Final

from starlette.routing import Route

from waypost.admin import apps, callbacks, credentials, jobs, operators, partners, secret_key, traces
from waypost.admin.authorisation import AdminGate
from waypost.admin.logs import audit, requests
from waypost.admin.operation import AdminRoute
from waypost.admin.personal import erasure, export, retention
from waypost.admin.provisioning import AdminContext
from waypost.admin.setup import apply

ROUTES: Final[tuple[AdminRoute, ...]] = (
    *partners.operation.rows,
    *retention.operation.rows,
    *credentials.operation.rows,
    *apps.operation.rows,
    *jobs.operation.rows,
    *traces.operation.rows,
    *requests.operation.rows,
    *export.operation.rows,
    *erasure.operation.rows,
    *audit.operation.rows,
    *operators.operation.rows,
    *secret_key.operation.rows,
    *apply.operation.rows,
    *callbacks.operation.rows,
)
"""The first match is used."""


def make_admin_routes(context: AdminContext, gate: AdminGate) -> list[Route]:
    """Return every route of the admin API, guarded by the gate."""
    return [Route(row.path, gate.guard(row, partial(row.respond, context)), methods=[row.method]) for row in ROUTES]
