"""The audit log's page says every action in words."""

import pytest

from waypost.admin.routes import ROUTES
from waypost.api.asgi import AUDITED_ROUTES
from waypost.console.routes import AUDITED_ACTIONS, PAGES
from waypost.console.settings.audit import make_audit_row
from waypost.store.accounts.audit_log import ANONYMOUS_ACTOR, AuditEntry


def test_each_audited_action_has_a_text_and_each_text_an_action() -> None:
    audited = {f"{row.method} {row.path}" for row in PAGES if row.is_audited}
    audited |= {row.name for row in ROUTES if row.is_action} | AUDITED_ROUTES

    assert set(AUDITED_ACTIONS) == audited


@pytest.mark.parametrize(
    ("action", "actor", "subject", "status", "detail", "expected"),
    [
        ("DELETE /partner/app/{app_id}/apikey/{key_id}", "ann@acme.test", "app_id=a1 key_id=k2", 200, "",
         ("Revoke an additional app key", "ann@acme.test", "partner API", [("app", "Shop"), ("key", "k2")], "")),
        ("POST /admin/apps", ANONYMOUS_ACTOR, "", 401, "authentication_failed",
         ("Create an app", "No valid token", "admin API", list[tuple[str, str]](), "authentication failed")),
        ("GET /admin/partners", ANONYMOUS_ACTOR, "", 401, "authentication_failed",
         ("Call without permission", "No valid token", "admin API", list[tuple[str, str]](), "authentication failed")),
        ("POST /settings/keys", "ann@acme.test", "", 400, "InvalidPageRequest",
         ("Create an API key", "ann@acme.test", "console", list[tuple[str, str]](), "invalid page request")),
        ("GET /apps/{app_id}/messages", "ann@acme.test", "app_id=other", 200, "searched in hidden texts",
         ("Search in hidden texts", "ann@acme.test", "console", [("app", "other")], "searched in hidden texts")),
    ],
)  # fmt: skip
def test_entry_in_words(
    action: str,
    actor: str,
    subject: str,
    status: int,
    detail: str,
    expected: tuple[str, str, str, list[tuple[str, str]], str],
) -> None:
    entry = AuditEntry(0, 1, actor, "192.0.2.1", action, subject, status, detail)

    row = make_audit_row(entry, {"a1": "Shop"}, AUDITED_ACTIONS)

    assert (row.text, row.actor, row.interface, row.subject, row.reason) == expected
