"""The routes of the admin API: `/admin/…`, JSON, its own credential, loopback unless set. One row per operation."""

from functools import partial
from typing import Final

from starlette.routing import Route

from waypost.admin import apps, callbacks, credentials, jobs, operators, partners, traces
from waypost.admin.authorisation import AdminGate
from waypost.admin.logs import audit, requests
from waypost.admin.personal import erasure, export, retention
from waypost.admin.provisioning import AdminContext
from waypost.admin.route import AdminRoute, AnyFields, EmptyBody
from waypost.admin.secret_key import KeyReplacement, replace_key
from waypost.admin.setup.apply import SetupRequest, apply_setup

# fmt: off
ROUTES: Final = (  # the first match is used
    #          method    path                                                      request type                      function
    AdminRoute("GET",    "/admin/partners",                                         None,                         partners.list_partners),
    AdminRoute("POST",   "/admin/partners",                                         partners.NewPartner,          partners.add_partner),
    AdminRoute("POST",   "/admin/partners/{partner_id}/password",                   partners.NewPassword,         partners.change_password),
    AdminRoute("GET",    "/admin/partners/{partner_id}/quotas",                     None,                         partners.show_quotas),
    AdminRoute("PUT",    "/admin/partners/{partner_id}/quotas",                     partners.NewQuotas,           partners.change_quotas),
    AdminRoute("GET",    "/admin/partners/{partner_id}/retention",                  None,                         retention.show_periods),
    AdminRoute("PUT",    "/admin/partners/{partner_id}/retention",                  retention.NewPeriods,         retention.change_periods),
    AdminRoute("GET",    "/admin/partners/{partner_id}/client-secrets",             None,                         credentials.list_secrets),
    AdminRoute("POST",   "/admin/partners/{partner_id}/client-secrets",             credentials.NewSecret,        credentials.add_secret),
    AdminRoute("DELETE", "/admin/partners/{partner_id}/client-secrets/{secret_id}", credentials.SecretRevocation, credentials.revoke_secret),
    AdminRoute("GET",    "/admin/partners/{partner_id}/api-keys",                   None,                         credentials.list_keys),
    AdminRoute("POST",   "/admin/partners/{partner_id}/api-keys",                   credentials.NewKey,           credentials.add_key),
    AdminRoute("DELETE", "/admin/partners/{partner_id}/api-keys/{key_id}",          None,                         credentials.revoke_key),
    AdminRoute("GET",    "/admin/partners/{partner_id}/universal-tokens",           None,                         credentials.list_tokens),
    AdminRoute("POST",   "/admin/partners/{partner_id}/universal-tokens",           credentials.NewToken,         credentials.add_token),
    AdminRoute("DELETE", "/admin/partners/{partner_id}/universal-tokens/{token_id}", None,                        credentials.revoke_token),
    AdminRoute("POST",   "/admin/api-keys/revoke",                                  credentials.KeyToRevoke,      credentials.revoke_key_by_text),
    AdminRoute("GET",    "/admin/apps",                                             None,                         apps.list_apps),
    AdminRoute("POST",   "/admin/apps",                                             apps.NewApp,                  apps.add_app),
    AdminRoute("GET",    "/admin/apps/{app_id}/messages",                           None,                         apps.list_messages),
    AdminRoute("GET",    "/admin/apps/{app_id}/callbacks",                          None,                         apps.list_callbacks),
    AdminRoute("GET",    "/admin/apps/{app_id}/templates",                          None,                         apps.list_templates),
    AdminRoute("POST",   "/admin/apps/{app_id}/connect",                            apps.AppConnection,           apps.connect_app),
    AdminRoute("POST",   "/admin/apps/{app_id}/token/revoke",                       None,                         apps.renew_token),
    AdminRoute("GET",    "/admin/apps/{app_id}/rates",                              None,                         apps.show_rates),
    AdminRoute("PUT",    "/admin/apps/{app_id}/rates",                              apps.AppRatesChange,          apps.set_rates),
    AdminRoute("GET",    "/admin/queues",                                           None,                         jobs.list_queues),
    AdminRoute("GET",    "/admin/dead-letters",                                     None,                         jobs.list_dead_letters),
    AdminRoute("POST",   "/admin/dead-letters/{position}/retry",                    None,                         jobs.retry_dead_letter),
    AdminRoute("DELETE", "/admin/dead-letters/{position}",                          None,                         jobs.delete_dead_letter),
    AdminRoute("GET",    "/admin/messages",                                         None,                         jobs.count_messages),
    AdminRoute("GET",    "/admin/messages/{message_id}",                            None,                         jobs.show_message),
    AdminRoute("GET",    "/admin/trace/{message_id:path}",                          None,                         traces.show_trace),
    AdminRoute("POST",   "/admin/trace/{message_id:path}/reveal",                   EmptyBody,                    traces.reveal_trace),
    AdminRoute("GET",    "/admin/requests",                                         requests.RequestLogQuery,     requests.list_requests),
    AdminRoute("GET",    "/admin/requests/{request_id:path}",                       None,                         requests.show_request),
    AdminRoute("POST",   "/admin/recipients/export",                                export.RecipientExport,       export.export_personal_data),
    AdminRoute("POST",   "/admin/recipients/erase",                                 erasure.RecipientErasure,       erasure.erase_personal_data),
    AdminRoute("POST",   "/admin/store/compact",                                    EmptyBody,                    erasure.compact_store),
    AdminRoute("GET",    "/admin/audit",                                            audit.AuditQuery,             audit.list_audit_entries),
    AdminRoute("GET",    "/admin/operator-accounts",                                None,                         operators.list_accounts),
    AdminRoute("PUT",    "/admin/operator-accounts/{account_id}",                   AnyFields,                    operators.put_account),
    AdminRoute("GET",    "/admin/operator-accounts/{account_id}/numbers",           operators.NumbersQuery,       operators.show_numbers),
    AdminRoute("POST",   "/admin/business-accounts",                                operators.NewBusinessAccount, operators.put_business_account),
    AdminRoute("POST",   "/admin/business-accounts/{account_id}/subscribe",         EmptyBody,                    operators.subscribe_account),
    AdminRoute("PUT",    "/admin/apps/{app_id}/operator",                           operators.OperatorSwitch,     operators.switch_operator),
    AdminRoute("POST",   "/admin/secret/rotate",                                    KeyReplacement,               replace_key),
    AdminRoute("POST",   "/admin/setup",                                            SetupRequest,                 apply_setup),
    AdminRoute("GET",    "/admin/doctor",                                           operators.DoctorQuery,        operators.run_doctor),
    AdminRoute("GET",    "/admin/subscriptions",                                    callbacks.SubscriptionQuery,  callbacks.list_subscriptions),
    AdminRoute("GET",    "/admin/subscriptions/{subscription_id}",                  None,                         callbacks.show_subscription),
    AdminRoute("POST",   "/admin/subscriptions/{subscription_id}/check",            EmptyBody,                    callbacks.check_subscription),
    AdminRoute("POST",   "/admin/subscriptions/{subscription_id}/resume",           EmptyBody,                    callbacks.resume_deliveries),
    AdminRoute("GET",    "/admin/subscriptions/{subscription_id}/key",              None,                         callbacks.show_key, shows_secret=True),
    AdminRoute("POST",   "/admin/subscriptions/{subscription_id}/key/rotate",       callbacks.KeyRotation,        callbacks.rotate_key),
    AdminRoute("GET",    "/admin/callbacks/report",                                 callbacks.ReportQuery,        callbacks.show_report),
    AdminRoute("POST",   "/admin/callbacks/replay",                                 callbacks.ReplayRequest,      callbacks.replay_callbacks),
    AdminRoute("GET",    "/admin/callbacks/{callback_id}",                          None,                         callbacks.show_callback),
    AdminRoute("POST",   "/admin/callbacks/{callback_id}/reveal",                   EmptyBody,                    callbacks.reveal_callback),
)
# fmt: on


def make_admin_routes(context: AdminContext, gate: AdminGate) -> list[Route]:
    """Return every route of the admin API, guarded by the gate."""
    return [Route(row.path, gate.guard(row, partial(row.respond, context)), methods=[row.method]) for row in ROUTES]
