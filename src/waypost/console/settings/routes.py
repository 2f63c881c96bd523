"""The settings' rows of the route table."""

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
    PageRow(Kind.PAGE, "/settings",                                     profile.show_profile,        "the account, and who is signed in to it"),
    PageRow(Kind.ACT,  "/settings/sessions/end-others",                 profile.end_others,          "sign out everywhere else"),
    PageRow(Kind.PAGE, "/settings/password",                            password.show_password,      "what changing the password does"),
    PageRow(Kind.ACT,  "/settings/password",                            password.change_password,    "change it"),
    PageRow(Kind.PAGE, "/settings/secrets",                             secrets.show_secrets,        "client secrets by their ids"),
    PageRow(Kind.ACT,  "/settings/secrets",                             secrets.make_secret,         "make one, and show it this once"),
    PageRow(Kind.PAGE, "/settings/keys",                                api_keys.show_keys,          "API keys by their ids"),
    PageRow(Kind.ACT,  "/settings/keys",                                api_keys.make_key,           "make one, and show it this once"),
    PageRow(Kind.PAGE, "/settings/apps",                                app_list.show_apps,          "the partner's apps"),
    PageRow(Kind.ACT,  "/settings/apps",                                app_list.create_app,         "make a sandbox app"),
    PageRow(Kind.PAGE, "/settings/operator",                            operator.show_operator,      "who carries the apps, and whether it works"),
    PageRow(Kind.PAGE, "/apps/{app_id}/settings",                       app.show_app,            "one app, its credentials and preferences"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings",                       app_actions.change_app,         "change its name and preferences"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/delete",                app_actions.delete_app,         "delete a sandbox app"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/token",                 app_actions.show_token,         "show its app token"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/token/renew",           app_actions.renew_token,        "revoke it, and make the next one"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/keys",                  app_actions.make_key,           "make a second key"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/tokens",                app_actions.mint_token,         "make an app token that expires"),
    PageRow(Kind.ACT,  "/apps/{app_id}/settings/operator",              operator.switch_app,         "have another operator account carry it"),
    PageRow(Kind.PAGE, "/settings/audit",                               audit.show_audit,            "who did what from where"),
    PageRow(Kind.PAGE, "/settings/administrator",                       administrator.show_administrator, "whether this session administrates"),
    PageRow(Kind.ACT,  "/settings/administrator",                       administrator.begin,         "administrate for an hour"),
    PageRow(Kind.ACT,  "/settings/administrator/end",                   administrator.end,           "give it up"),
)
# fmt: on
_ACTIONS: Final = (secrets.REVOKE, api_keys.REVOKE, *app_actions.ACTIONS)

SETTINGS: Final = tuple(
    replace(row, is_audited=row.kind is Kind.ACT) for row in (*_ROWS, *(one.page_row for one in _ACTIONS))
)
