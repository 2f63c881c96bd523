"""Routes of the settings pages."""

from dataclasses import replace
from typing import Final

from waypost.console.route import Kind, PageRow
from waypost.console.settings import (
    administrator,
    api_keys,
    app,
    app_actions,
    app_list,
    audit,
    operator,
    password,
    profile,
)
from waypost.console.settings import client_secrets as secrets

# fmt: off
_ROWS: Final = (  # Source: spec, "Authentication"; facts 1 and 2
    #       kind       path                                             endpoint                     what it does
    PageRow(Kind.PAGE, "/settings",                                     profile.show_profile,        "details of the account and its sessions"),
    PageRow(Kind.ACT,  "/settings/sessions/end-others",                 profile.end_others,          "end all other sessions"),
    PageRow(Kind.PAGE, "/settings/password",                            password.show_password,      "form to change the password"),
    PageRow(Kind.ACT,  "/settings/password",                            password.change_password,    "change the password"),
    PageRow(Kind.PAGE, "/settings/secrets",                             secrets.show_secrets,        "list of client secrets"),
    PageRow(Kind.ACT,  "/settings/secrets",                             secrets.make_secret,         "create one, and show it once"),
    PageRow(Kind.PAGE, "/settings/keys",                                api_keys.show_keys,          "list of API keys"),
    PageRow(Kind.ACT,  "/settings/keys",                                api_keys.make_key,           "create one, and show it once"),
    PageRow(Kind.PAGE, "/settings/apps",                                app_list.show_apps,          "the partner's apps"),
    PageRow(Kind.ACT,  "/settings/apps",                                app_list.create_app,         "create a sandbox app"),
    PageRow(Kind.PAGE, "/settings/operator",                            operator.show_operator,      "operator accounts, and a health check"),
    PageRow(Kind.PAGE, "/apps/{app_id}/settings",                       app.show_app,            "one app with its credentials and preferences"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings",                       app_actions.change_app,         "change its name and preferences"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/delete",                app_actions.delete_app,         "delete a sandbox app"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/token",                 app_actions.show_token,         "show its app token"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/token/renew",           app_actions.renew_token,        "revoke and replace it"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/keys",                  app_actions.make_key,           "create an additional key"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/tokens",                app_actions.mint_token,         "create an app token that expires"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/operator",              operator.switch_app,         "switch to another operator account"),
    PageRow(Kind.PAGE, "/settings/audit",                               audit.show_audit,            "the audit log"),
    PageRow(Kind.PAGE, "/settings/administrator",                       administrator.show_administrator, "administrator rights of this session"),
    PageRow(Kind.ACT,  "/settings/administrator",                       administrator.begin,         "grant them for an hour"),
    PageRow(Kind.ACT,  "/settings/administrator/end",                   administrator.end,           "end them"),
)
# fmt: on
_ACTIONS: Final = (secrets.REVOKE, api_keys.REVOKE, *app_actions.ACTIONS)

SETTINGS: Final = tuple(
    replace(row, is_audited=row.kind is Kind.ACT) for row in (*_ROWS, *(one.page_row for one in _ACTIONS))
)
