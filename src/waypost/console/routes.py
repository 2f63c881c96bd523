"""The one table of pages: routes, navigation, tabs, commands of the palette, and texts of audited actions.

`{app_id}` in a path must be one of the partner's apps. What an audited row does is its text in the audit log.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from waypost.base.clock import HOUR_MS
from waypost.console import guard, partners, requests, sign_in
from waypost.console.callbacks import deliveries, replays, response_times, snippets, subscriptions
from waypost.console.conversations import listing as conversations
from waypost.console.conversations import thread
from waypost.console.flows import editor as flow_editor
from waypost.console.flows import listing as flows
from waypost.console.flows import play as flow_play
from waypost.console.messages import listing as messages
from waypost.console.messages import trace
from waypost.console.onboarding import page as onboarding
from waypost.console.overview import first_steps
from waypost.console.overview import page as overview
from waypost.console.page_tools import Command, PageTable, action_command
from waypost.console.palette import list_commands, search_commands
from waypost.console.phones import actions as phone_actions
from waypost.console.phones import business as business_phone
from waypost.console.phones import flows as phone_flows
from waypost.console.phones import page as phones
from waypost.console.phones import script as phone_script
from waypost.console.phones import sending as phone_sending
from waypost.console.phones.sending import require_own_phone
from waypost.console.route import (
    Audience,
    PageRoute,
    RouteKind,
    Section,
    action_row,
    live_row,
    page_row,
    part_row,
    rows_at,
)
from waypost.console.settings import access, app, audit, operator, personal_data, profile
from waypost.console.simulator import clock, faults, fleets, reviews, rules, snapshots
from waypost.console.simulator.context import require_simulator
from waypost.console.templates import draft_text, editor, gallery
from waypost.console.templates import page as template


def _audited(path: str, *rows: PageRoute) -> Sequence[PageRoute]:
    """Return rows below a path, of which each action writes an entry in the audit log."""
    return [replace(row, is_audited=row.kind is RouteKind.ACT) for row in rows_at(path, *rows)]


_OVERVIEW: Final = (
    page_row("/apps/{app_id}", overview.show_overview, "Overview", nav="app"),
    live_row("/apps/{app_id}/live", overview.live_overview, "stream its changes"),
    action_row("/apps/{app_id}/first-message", first_steps.send_first_message, "send a template to a phone"),
    action_row("/apps/{app_id}/sample-template", first_steps.create_sample_template, "submit a sample template"),
    *_audited(
        "",
        action_row("/apps/{app_id}/dead-letters/{position}/retry", overview.retry_dead_letter, "retry a dead letter"),
    ),
)
_ONBOARDING: Final = _audited(
    "/businesses",
    page_row("", onboarding.show_onboarding, "Onboarding", nav="always"),
    live_row("/live", onboarding.live_onboarding, "updates of it"),
    action_row("", onboarding.create_business, "create a business"),
    action_row("/{app_id}/begin", onboarding.begin, "begin the onboarding of an app"),
    *(
        replace(row, endpoint=require_simulator(row.kind, row.endpoint))
        for row in (
            action_row("/{app_id}/sign-up", onboarding.sign_up, "sign up a business", is_shared=True),
            part_row("/{app_id}/signed-up", onboarding.return_from_window, "the end of a window", is_shared=True),
            action_row("/{app_id}/template", onboarding.submit_template, "submit a sample template"),
            action_row("/{app_id}/message", onboarding.send_first, "send a template to a phone"),
            action_row("/{app_id}/reply", onboarding.reply, "reply from a phone"),
        )
    ),
)
_PHONES_OF_SIMULATOR: Final = (
    live_row("/phones/live", phones.live_phones, "updates of them"),
    part_row("/phones/media/{media_id}", phones.show_media, "a media file"),
    part_row("/phones/{phone}/handset", phones.show_handset, "one phone with another chat open"),
    part_row("/phones/{phone}/chats/{number}/older", phones.show_older, "older messages of a chat"),
    *(
        replace(row, endpoint=require_own_phone(row.endpoint))
        for row in rows_at(
            "/phones/{phone}",
            page_row("/script", phone_script.show_script, "the form of its script"),
            action_row("/script", phone_script.save_script, "save it, or change the rows of the form"),
            action_row("/chats/{number}/text", phone_sending.send_text, "send a text"),
            action_row("/chats/{number}/file", phone_sending.send_file, "send a file"),
            action_row("/chats/{number}/location", phone_sending.send_location, "send a location"),
            action_row("/chats/{number}/contact", phone_sending.send_contact, "send a contact card"),
            action_row(
                "/chats/{number}/poll", phone_sending.send_unsupported, "send a type that the operator does not forward"
            ),
            action_row(
                "/items/{position}/contact", phone_actions.share_contact, "respond to a request for contact data"
            ),
            action_row("/items/{position}/react", phone_actions.react, "react to a message"),
            action_row("/items/{position}/flow", phone_flows.play_flow, "open or play the flow of a message"),
            action_row("/number", phone_actions.change_number, "change the number"),
        )
    ),
    *(one.page_row for one in phone_actions.PHONE_ACTIONS),
    *rows_at(
        business_phone.BUSINESS_PATH,
        page_row("", business_phone.show_business_phone, "Phone of a business"),
        live_row("/live", business_phone.live_business_phone, "updates of it"),
        action_row("/sync/{sync_type}", business_phone.request_sync, "request its contacts or history"),
        action_row("/history", business_phone.generate_history, "generate its history"),
        action_row("/file", business_phone.send_app_file, "send a file from the business's phone"),
    ),
    *(one.page_row for one in business_phone.BUSINESS_ACTIONS),
)
PHONES: Final = (
    page_row("/phones", phones.show_phones, "Phones", nav="simulator"),
    *(replace(row, endpoint=require_simulator(row.kind, row.endpoint)) for row in _PHONES_OF_SIMULATOR),
)
_TEMPLATES: Final = rows_at(
    "/apps/{app_id}/templates",
    page_row("", gallery.show_gallery, "Templates", nav="app"),
    live_row("/live", gallery.live_gallery, "updates of it"),
    page_row("/new", editor.show_new, "New template"),
    action_row("/new", editor.write_new, "preview, check, change or submit it"),
    part_row("/media/{media_id}", draft_text.show_sample, "a sample file"),
    page_row("/{template_id}", template.show_template, "one template"),
    live_row("/{template_id}/live", template.live_template, "updates of it"),
    page_row("/{template_id}/edit", editor.show_edit, "editor for an existing template"),
    action_row("/{template_id}/edit", editor.write_edit, "preview, check, change or submit it"),
    action_row("/{template_id}/send", template.send_template, "send it"),
    action_row("/{template_id}/delete", template.delete_template, "delete it"),
)
_FLOWS: Final = rows_at(
    "/apps/{app_id}/flows",
    page_row("", flows.show_flows, "Flows", nav="app"),
    action_row("", flows.create_flow, "create a Flow"),
    action_row("/check", flow_editor.check_draft, "check a text"),
    page_row("/{flow_id}", flow_editor.show_editor, "editor of a Flow"),
    action_row("/{flow_id}/play", flow_play.play_draft, "play its text"),
    action_row("/{flow_id}/save", flow_editor.save_draft, "upload its text"),
    action_row("/{flow_id}/publish", flow_editor.publish_flow, "publish it"),
    action_row("/{flow_id}/deprecate", flow_editor.deprecate_flow, "deprecate it"),
    action_row("/{flow_id}/delete", flow_editor.delete_flow, "delete it"),
    action_row("/{flow_id}/change", flow_editor.change_flow, "change its name or endpoint"),
)
_MESSAGES: Final = (
    *messages.MESSAGES.routes("Messages", tab="Sent", nav="app"),
    *rows_at(
        "/apps/{app_id}/messages/selected",
        action_row("/replay", messages.replay_selected, "replay their callbacks"),
        action_row("/show", messages.show_selected, "show their texts"),
    ),
    *messages.RECEIVED.routes("Messages received", tab="Received"),
    *rows_at(
        "/apps/{app_id}/messages",
        action_row("/received/reveal", messages.reveal_received, "show the text of one"),
        live_row("/{message_id}/live", trace.live_trace, "stream a message's trace"),
        part_row("/{message_id}/json", trace.show_json, "the trace as JSON"),
        action_row("/{message_id}/content", trace.show_content, "show its content and its request as code"),
        action_row("/{message_id}/resend", trace.resend_message, "resend it as a new message"),
        page_row("/{message_id:path}", trace.show_trace, "show a message's trace"),
    ),
    *conversations.CONVERSATIONS.routes("Conversations", tab="Conversations"),
    *rows_at(
        "/apps/{app_id}/conversations/{recipient_id}",
        page_row("", thread.show_thread, "show one conversation"),
        live_row("/live", thread.live_thread, "stream its messages"),
        action_row("/reveal", thread.reveal_message, "show the text of one message"),
        action_row("/reply", thread.send_reply, "send a text within the window"),
        action_row("/read", thread.mark_read, "mark what was received as read"),
    ),
    *requests.REQUESTS.routes("API requests", tab="API requests"),
    page_row("/requests/{entry_id}", requests.show_request, "one request and why it failed"),
)
_CALLBACKS: Final = (
    *_audited(
        "/apps/{app_id}/callbacks",
        page_row("", subscriptions.show_subscriptions, "Callbacks", nav="app", tab="Subscriptions"),
        live_row("/live", subscriptions.live_subscriptions, "updates of it"),
        page_row("/new", subscriptions.show_new, "New subscription"),
        action_row("/new", subscriptions.create, "create a callback subscription"),
        action_row("/replay-selected", replays.replay_selected, "replay selected callbacks"),
    ),
    *_audited(
        "/apps/{app_id}/callbacks/subscriptions/{subscription_id}",
        page_row("", subscriptions.show_subscription, "one subscription"),
        live_row("/live", subscriptions.live_subscription, "updates of it"),
        action_row("", subscriptions.change, "change a callback subscription"),
        action_row("/check", subscriptions.send_ping, "send a ping to an endpoint"),
        action_row("/pause", subscriptions.pause, "pause a callback subscription"),
        action_row("/resume", subscriptions.resume, "resume a callback subscription"),
        action_row("/retry", subscriptions.retry, "retry waiting callbacks"),
        action_row("/key", subscriptions.show_key, "show a signing key"),
        action_row("/rotate", subscriptions.rotate_key, "replace a signing key"),
        action_row("/delete", subscriptions.delete, "delete a callback subscription"),
    ),
    *deliveries.DELIVERIES.routes("Deliveries", tab="Deliveries"),
    *_audited(
        "/apps/{app_id}/callbacks/deliveries/{callback_id}",
        page_row("", deliveries.show_delivery, "one callback and its attempts"),
        live_row("/live", deliveries.live_delivery, "updates of it"),
        action_row("/body", deliveries.download_body, "download the body of a callback"),
        action_row("/reveal", deliveries.reveal_body, "show the texts of a callback"),
        action_row("/replay", deliveries.replay, "replay a callback"),
    ),
    *_audited(
        "/apps/{app_id}/callbacks",
        page_row("/response-times", response_times.show_response_times, "Response times", tab="Response times"),
        page_row("/replay", replays.show_replay, "Replay callbacks", tab="Replay"),
        action_row("/replay", replays.replay, "replay callbacks"),
        page_row("/verify", snippets.show_snippets, "Verify a signature", tab="Verify"),
    ),
)
SIMULATOR: Final = tuple(
    replace(row, endpoint=require_simulator(row.kind, row.endpoint), is_shared=True)
    for row in (
        *_audited(
            "/simulator",
            page_row("", reviews.show_reviews, "Template reviews", nav="simulator", tab="Reviews"),
            live_row("/live", reviews.live_reviews, "updates of it"),
            action_row("/templates/{template_id}/{act}", reviews.act_on_template, "act on a template as the operator"),
            page_row("/faults", faults.show_faults, "Arm a fault", tab="Faults"),
            live_row("/faults/live", faults.live_faults, "updates of it"),
            page_row("/faults/new/{on}/{kind}", faults.show_fault_form, "form of one kind of fault"),
            action_row("/faults/new/{on}/{kind}", faults.arm_form, "arm a fault"),
            action_row("/faults/presets/{key}", faults.arm_preset, "arm a preset of faults"),
            action_row("/faults/presets/{key}/disarm", faults.disarm_preset, "disarm a preset of faults"),
            action_row("/faults/json", faults.arm_json, "arm a fault given as JSON"),
            page_row("/faults/{fault_id}", faults.show_fault, "one fault with its last firings"),
            live_row("/faults/{fault_id}/live", faults.live_fault, "updates of it"),
            page_row("/clock", clock.show_clock, "Clock", tab="Clock"),
            live_row("/clock/live", clock.live_clock, "updates of it"),
            action_row("/clock/next", clock.advance_to_next, "advance the clock to the next due time"),
            page_row("/fleets", fleets.show_fleets, "Fleets", tab="Fleets"),
            action_row("/fleets", fleets.create_fleet, "create a fleet"),
            page_row("/fleets/{name}", fleets.show_fleet, "one fleet with its statistics"),
            live_row("/fleets/{name}/live", fleets.live_fleet, "updates of it"),
            page_row("/snapshots", snapshots.show_snapshots, "Snapshots and reset", tab="Snapshots"),
            action_row("/snapshots", snapshots.save_snapshot, "save a snapshot"),
            part_row("/snapshots/{name}/content", snapshots.download_snapshot, "download a snapshot"),
            page_row("/rules", rules.show_rules, "Operator rules", tab="Rules"),
            action_row("/rules", rules.change_rules, "change the rules of the simulator"),
        ),
        *_audited(
            "",
            reviews.REVIEW_DELAY.page_row,
            *(row.page_row for row in faults.FAULT_ACTIONS),
            *(row.page_row for row in clock.CLOCK_ACTIONS),
            fleets.DELETE_FLEET.page_row,
            *(row.page_row for row in snapshots.SNAPSHOT_ACTIONS),
        ),
    )
)
_PARTNERS: Final = _audited(
    "/partners",
    page_row("", partners.show_partners, "New partner", is_shared=True, nav="administrator"),
    action_row("", partners.make_partner, "create a partner", is_shared=True),
    action_row("/{partner_id}/enter", partners.enter_partner, "continue as another partner", is_shared=True),
)
_SETTINGS: Final = (
    *_audited(
        "/settings",
        page_row("", profile.show_profile, "Settings", nav="always", tab="Account/Profile"),
        action_row("/sessions/end-others", profile.end_other_sessions, "end all other sessions"),
        action_row("/retention", profile.change_retention, "change retention periods", is_shared=True),
        action_row("/quotas", profile.change_quotas, "change quotas", is_shared=True),
        page_row("/password", access.show_password, "Change password", tab="Account/Password"),
        action_row("/password", access.change_password, "change the password"),
        page_row("/administrator", access.show_administrator, "Act as administrator", tab="Account/Administrator"),
        action_row("/administrator", access.start_administration, "start to act as administrator"),
        action_row("/administrator/end", access.end_administration, "end acting as administrator"),
        page_row("/secrets", access.show_secrets, "Client secrets", tab="API access/Client secrets"),
        action_row("/secrets", access.make_secret, "create a client secret"),
        page_row("/keys", access.show_keys, "API keys", tab="API access/API keys"),
        action_row("/keys", access.make_key, "create an API key"),
        page_row("/apps", app.show_apps, "Apps and tokens", tab="Sending/Apps"),
        action_row("/apps", app.create_app, "create a sandbox app"),
        page_row("/operator", operator.show_operator, "Operator and health check", tab="Sending/Operator"),
    ),
    *_audited(
        "/apps/{app_id}/settings",
        page_row("", app.show_app, "App token, keys, settings"),
        action_row("", app.change_app, "change an app"),
        action_row("/delete", app.delete_app, "delete an app"),
        action_row("/token", app.show_token, "show an app token"),
        action_row("/token/renew", app.renew_token, "replace an app token"),
        action_row("/keys", app.make_key, "create an additional app key"),
        action_row("/tokens", app.mint_token, "create an app token that expires"),
        action_row("/rates", app.set_rate, "set a rate limit of an app", is_shared=True),
        action_row("/rates/reset", app.reset_rate, "reset a rate limit of an app", is_shared=True),
        action_row("/rates/reset-all", app.reset_rates, "reset all rate limits of an app", is_shared=True),
        page_row("/operator", operator.show_switch, "Switch operator account", is_shared=True),
        action_row("/operator", operator.switch_app, "switch an app to another operator account", is_shared=True),
    ),
    *audit.AUDIT.routes("Audit log", tab="Records/Audit log"),
    *_audited(
        "/settings",
        page_row(
            "/personal-data",
            personal_data.show_personal_data,
            "Personal data of a recipient",
            is_shared=True,
            tab="Records/Personal data",
        ),
        action_row(
            "/personal-data/export", personal_data.export_recipient, "export the data of a recipient", is_shared=True
        ),
        action_row(
            "/personal-data/erase", personal_data.erase_recipient, "erase the data of a recipient", is_shared=True
        ),
    ),
    *_audited(
        "",
        access.REVOKE_CLIENT_SECRET.page_row,
        access.REVOKE_API_KEY.page_row,
        *(row.page_row for row in app.APP_ACTIONS),
    ),
)
_REFERENCE: Final = _audited(
    "",
    part_row("/try/session", access.show_session, "show the session to the API reference"),
    action_row("/try/partner-token", access.give_partner_token, "use a partner token in the API reference"),
    action_row("/apps/{app_id}/try-token", access.give_app_token, "use an app token in the API reference"),
)
_BASE: Final = (  # Source: decision 0057
    page_row("/sign-in", sign_in.show_sign_in, "show the sign-in form", audience=Audience.PUBLIC),
    action_row("/sign-in", sign_in.sign_in, "start a session", audience=Audience.PUBLIC),
    action_row("/enter", sign_in.enter, "start a demo session", audience=Audience.PUBLIC),
    action_row("/sign-out", sign_in.sign_out, "end the session"),
    action_row("/theme", sign_in.choose_theme, "choose a theme", audience=Audience.PUBLIC),
    action_row("/times", sign_in.choose_times, "choose the zone of times"),
    page_row("/", sign_in.show_home, "redirect to an app's overview"),
    part_row("/commands", list_commands, "list commands for the palette"),
    part_row("/commands/search", search_commands, "find people and messages for it"),
)
NOT_FOUND_ROUTES: Final = tuple(  # last: an error page for unknown paths below these
    page_row(f"/{place}/{{rest:path}}", guard.report_unknown_path, "report an unknown path")
    for place in ("apps", "businesses", "partners", "phones", "requests", "simulator", "settings")
)
ELSEWHERE: Final = page_row(  # very last, and for browsers only: an error page for any other path
    "/{rest:path}", guard.report_unknown_path, "report an unknown path to a browser", audience=Audience.PUBLIC
)
SECTIONS: Final = (  # in the order of the navigation; the name is that of its icon
    Section("overview", "Overview", _OVERVIEW),
    Section("onboarding", "Onboarding", _ONBOARDING),
    Section("phones", "Phones", PHONES),
    Section("templates", "Templates", _TEMPLATES),
    Section("flows", "Flows", _FLOWS),
    Section("messages", "Messages", _MESSAGES),
    Section("callbacks", "Callbacks", _CALLBACKS),
    Section("simulator", "Simulator", SIMULATOR),
    Section("partners", "Partners", _PARTNERS),
    Section("settings", "Settings", _SETTINGS),
)
PAGES: Final[tuple[PageRoute, ...]] = (
    *_BASE, *(row for section in SECTIONS for row in section.rows), *_REFERENCE, *NOT_FOUND_ROUTES,
)  # fmt: skip
AUDITED_ACTIONS: Final[Mapping[str, str]] = {
    **{f"{row.method} {row.path}": f"{row.does[:1].upper()}{row.does[1:]}" for row in PAGES if row.is_audited},
    **audit.API_ACTIONS,
}
"""What each audited action did, by method and path template."""

_APP: Final = "/apps/{app_id}"
COMMANDS: Final = (  # without the pages of the navigation: the browser adds those itself
    *(command for section in SECTIONS for command in section.commands),
    Command("Unread conversations", "Messages", f"{_APP}/conversations?state=unread"),
    Command("Failed messages", "Messages", f"{_APP}/messages?state=failed"),
    Command("Failed API requests", "Messages", "/requests?status=4xx"),
    Command("App token: show, regenerate", "Settings", f"{_APP}/settings#token"),
    Command("Additional keys of the app", "Settings", f"{_APP}/settings#keys-of-app"),
    Command("Expiring app tokens", "Settings", f"{_APP}/settings#tokens"),
    Command("Rates and limits of the app", "Settings", f"{_APP}/settings#rates"),
    Command("Name and preferences of the app", "Settings", f"{_APP}/settings#preferences"),
    Command("Delete the app", "Settings", f"{_APP}/settings#delete"),
    Command("Partner: e-mail, name, account", "Settings", "/settings#account"),
    Command("Retention of messages and bodies", "Settings", "/settings#retention"),
    Command("Quotas", "Settings", "/settings#quotas"),
    Command("Console sessions: sign out others", "Settings", "/settings#sessions"),
    action_command("Clock: advance 1 hour", "Simulator", "/simulator/clock/advance", by=str(HOUR_MS)),
    action_command("Clock: advance 1 day", "Simulator", "/simulator/clock/advance", by=str(24 * HOUR_MS)),
    action_command("Clock: advance to next due", "Simulator", "/simulator/clock/next"),
    action_command("Clock: freeze", "Simulator", "/simulator/clock/freeze"),
    action_command("Clock: run", "Simulator", "/simulator/clock/run"),
    action_command(
        "Disarm all faults", "Simulator", "/simulator/faults/disarm", confirmation=faults.DISARM_ALL_QUESTION
    ),
    action_command("Theme: light", "Theme", "/theme", stays=False, theme="light"),
    action_command("Theme: dark", "Theme", "/theme", stays=False, theme="dark"),
    action_command("Theme: system", "Theme", "/theme", stays=False, theme="system"),
    action_command("Sign out", "Account", "/sign-out", stays=False),
)
TABLE: Final = PageTable(COMMANDS, AUDITED_ACTIONS)
