"""Routes of the settings pages."""

from dataclasses import replace
from typing import Final

from waypost.console.route import PageRoute, RouteKind
from waypost.console.settings import access as administrator
from waypost.console.settings import access as api_keys
from waypost.console.settings import access as password
from waypost.console.settings import access as secrets
from waypost.console.settings import app, audit, operator, personal_data, profile
from waypost.console.settings import app as app_actions
from waypost.console.settings import app as app_list
from waypost.console.settings import operator as operator_switch
from waypost.console.settings import profile as partner_limits

_ROWS: Final = (  # Source: spec, "Authentication"; facts 1 and 2
    # kind, path, endpoint, what it does
    PageRoute(RouteKind.PAGE, "/settings", profile.show_profile, "details of the account and its sessions"),
    PageRoute(RouteKind.ACT, "/settings/sessions/end-others", profile.end_other_sessions, "end all other sessions"),
    PageRoute(
        RouteKind.ACT,
        path="/settings/retention",
        endpoint=partner_limits.change_retention,
        does="change the partner's retention periods",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.ACT,
        path="/settings/quotas",
        endpoint=partner_limits.change_quotas,
        does="change the partner's quotas",
        is_shared=True,
    ),
    PageRoute(RouteKind.PAGE, "/settings/password", password.show_password, "form to change the password"),
    PageRoute(RouteKind.ACT, "/settings/password", password.change_password, "change the password"),
    PageRoute(RouteKind.PAGE, "/settings/secrets", secrets.show_secrets, "list of client secrets"),
    PageRoute(RouteKind.ACT, "/settings/secrets", secrets.make_secret, "create one, and show it once"),
    PageRoute(RouteKind.PAGE, "/settings/keys", api_keys.show_keys, "list of API keys"),
    PageRoute(RouteKind.ACT, "/settings/keys", api_keys.make_key, "create one, and show it once"),
    PageRoute(RouteKind.PAGE, "/settings/apps", app_list.show_apps, "the partner's apps"),
    PageRoute(RouteKind.ACT, "/settings/apps", app_list.create_app, "create a sandbox app"),
    PageRoute(RouteKind.PAGE, "/settings/operator", operator.show_operator, "operator accounts, and a health check"),
    PageRoute(RouteKind.PAGE, "/apps/{app_id}/settings", app.show_app, "one app with its credentials and preferences"),
    PageRoute(RouteKind.ACT, "/apps/{app_id}/settings", app_actions.change_app, "change its name and preferences"),
    PageRoute(RouteKind.ACT, "/apps/{app_id}/settings/delete", app_actions.delete_app, "delete a sandbox app"),
    PageRoute(RouteKind.ACT, "/apps/{app_id}/settings/token", app_actions.show_token, "show its app token"),
    PageRoute(RouteKind.ACT, "/apps/{app_id}/settings/token/renew", app_actions.renew_token, "revoke and replace it"),
    PageRoute(RouteKind.ACT, "/apps/{app_id}/settings/keys", app_actions.make_key, "create an additional key"),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/settings/tokens",
        endpoint=app_actions.mint_token,
        does="create an app token that expires",
    ),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/settings/rates",
        endpoint=app_actions.set_rate,
        does="give it a rate of its own",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/settings/rates/reset",
        endpoint=app_actions.reset_rate,
        does="remove one of its own rates",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/settings/rates/reset-all",
        endpoint=app_actions.reset_rates,
        does="remove all of its own rates",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.PAGE,
        path="/apps/{app_id}/settings/operator",
        endpoint=operator_switch.show_switch,
        does="check another operator account before a switch",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/settings/operator",
        endpoint=operator_switch.switch_app,
        does="switch to it",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.PAGE,
        path="/settings/personal-data",
        endpoint=personal_data.show_personal_data,
        does="forms to export and erase a recipient's data",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.ACT,
        path="/settings/personal-data/export",
        endpoint=personal_data.export_recipient,
        does="export what is stored about a number",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.ACT,
        path="/settings/personal-data/erase",
        endpoint=personal_data.erase_recipient,
        does="erase it",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.PAGE,
        path="/settings/administrator",
        endpoint=administrator.show_administrator,
        does="administrator rights of this session",
    ),
    PageRoute(RouteKind.ACT, "/settings/administrator", administrator.start_administration, "grant them for an hour"),
    PageRoute(RouteKind.ACT, "/settings/administrator/end", administrator.end_administration, "end them"),
)
_ACTIONS: Final = (secrets.REVOKE_CLIENT_SECRET, api_keys.REVOKE_API_KEY, *app_actions.APP_ACTIONS)

SETTINGS: Final = (
    *(replace(row, is_audited=row.kind is RouteKind.ACT) for row in (*_ROWS, *(one.page_row for one in _ACTIONS))),
    *audit.AUDIT.routes,
)
