"""The rules page: settings of the simulated operator, as a form made from a table."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import error_notice
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import get_control, parse_seconds_ms, parse_whole, render_tab
from waypost.console.web.page_request import PageRequest

RULES_PATH: Final = "/simulator/rules"
RuleKind = Literal["seconds", "whole", "flag", "choice", "words"]


@dataclass(frozen=True, slots=True)
class SimulatorRule:
    """One setting.

    Args:
        name: of the control API's member.
        hint: an explanation.
        empty: the meaning of an empty field; empty: the field is required.
        choices: values and labels.
    """

    name: str
    kind: RuleKind
    label: str
    hint: str = ""
    empty: str = ""
    choices: tuple[tuple[str, str], ...] = ()


SIMULATOR_RULES: Final[tuple[tuple[str, tuple[SimulatorRule, ...]], ...]] = (  # Source: simulator/settings.py
    (
        "Templates",
        (
            SimulatorRule(
                "review_delay_ms",
                kind="seconds",
                label="Review after",
                hint="From submission to automatic review.",
                empty="reviews are manual",
            ),
            SimulatorRule(
                "marketing_words",
                kind="words",
                label="Marketing words",
                hint="One per line. A UTILITY template that contains one is stored as MARKETING, or rejected.",
            ),
            SimulatorRule("templates_at_most", "whole", "Templates per account", "Each language counts."),
            SimulatorRule("check_languages", "flag", "Accept only the operator's languages"),
            SimulatorRule(
                "check_references",
                kind="flag",
                label="Uploads, media and flows must exist",
                hint="Those that a template or message refers to.",
            ),
            SimulatorRule(
                "strict",
                kind="flag",
                label="Strict template rules",
                hint="At most 100 new templates per hour, no duplicate content, no names of the operator's samples.",
            ),
        ),
    ),
    (
        "Delivery",
        (
            SimulatorRule(
                "deliver_after_ms",
                kind="seconds",
                label="Delivered after",
                hint="From sent to delivered, for phones without their own delay.",
            ),
            SimulatorRule(
                "read_after_ms", "seconds", "Read after", "From delivered to read.", "messages are read manually"
            ),
            SimulatorRule("skips_delivered", "flag", "Skip the delivered status of read messages"),
            SimulatorRule(
                "window_at_once",
                kind="flag",
                label="Reject messages outside the window at once",
                hint="Otherwise they are accepted and fail later.",
            ),
        ),
    ),
    (
        "Limits",
        (
            SimulatorRule(
                "limits",
                kind="flag",
                label="Apply limits",
                hint="Throughput of a number, messages to one phone, edits of a template.",
            ),
            SimulatorRule(
                "calls_per_hour", "whole", "Management calls per hour", "Per account.", "the operator's own limit"
            ),
            SimulatorRule(
                "throttle_status",
                kind="choice",
                label="Status for too many messages",
                choices=(("429", "HTTP 429"), ("400", "HTTP 400, as sometimes observed")),
            ),
            SimulatorRule("send_retry_after", "flag", "Send Retry-After with 429"),
            SimulatorRule(
                "messaging_limit_code",
                kind="choice",
                label="Error above the messaging limit",
                choices=(("131048", "131048"), ("130429", "130429")),
            ),
        ),
    ),
    (
        "Webhooks",
        (
            SimulatorRule("batch_at_most", "whole", "Maximum updates per POST"),
            SimulatorRule(
                "gather_ms",
                kind="seconds",
                label="Time between POSTs",
                hint="At least, in real time; under load, updates are batched.",
            ),
            SimulatorRule(
                "statuses_version",
                kind="choice",
                label="Format of statuses",
                choices=(("v24", "v24 and later"), ("v23", "v23 and earlier, with conversation")),
            ),
            SimulatorRule("statuses_contacts", "flag", "Include contacts with statuses"),
            SimulatorRule("user_ids", "flag", "Include business-scoped user IDs"),
            SimulatorRule("contact_book", "flag", "Keep hidden numbers in a contact book"),
        ),
    ),
)


async def show_rules(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page with the current settings."""
    settings = await get_control(tools).get("/control/settings")
    return await render_tab(
        tools, page_request, "rules", groups=SIMULATOR_RULES, typed=format_settings(settings), wrong_field="", wrong=""
    )


async def change_rules(tools: PageTools, page_request: PageRequest) -> Response:
    """Change the settings that differ from the form; changes survive a restart."""
    form = await page_request.form()
    typed = {name: value for name, value in form.items() if isinstance(value, str)}
    control = get_control(tools)
    before = await control.get("/control/settings")
    changes = {name: value for name, value in parse_settings(typed).items() if value != before[name]}
    if not changes:
        return tools.redirect(RULES_PATH, "No changes.", kind="info")
    try:
        await control.json("PUT", "/control/settings", changes)
    except ApiResponseError as error:
        field, (text, _) = error.top_field, error_notice(error)
        return await render_tab(
            tools, page_request, "rules", 400, groups=SIMULATOR_RULES, typed=typed, wrong_field=field, wrong=text
        )
    labels = [rule.label for _, rules in SIMULATOR_RULES for rule in rules if rule.name in changes]
    return tools.redirect(RULES_PATH, f"Changed: {', '.join(labels)}.")


def format_settings(settings: dict[str, Any]) -> dict[str, str]:
    """Return the values of the form's fields."""
    return {
        rule.name: _format_value(rule, settings[rule.name])
        for _, rules in SIMULATOR_RULES
        for rule in rules
        if rule.name in settings
    }


def parse_settings(typed: dict[str, str]) -> dict[str, Any]:
    """Return the settings of the form as the control API accepts them.

    Raises:
        InvalidPageRequest: a number of seconds is not valid.
    """
    return {rule.name: _parse_value(rule, typed.get(rule.name, "")) for _, rules in SIMULATOR_RULES for rule in rules}


def _format_value(rule: SimulatorRule, value: Any) -> str:
    if value is None:
        return ""
    match rule.kind:
        case "seconds":
            return f"{value / 1000:g}"
        case "flag":
            return "on" if value else ""
        case "words":
            return "\n".join(value)
        case _:
            return str(value)


def _parse_value(rule: SimulatorRule, text: str) -> Any:
    match rule.kind:
        case "seconds":
            return parse_seconds_ms(text, rule.label)
        case "flag":
            return text == "on"
        case "words":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case "whole":
            return parse_whole(text) if text.strip() else None
        case "choice":
            return parse_whole(text) if text.isdecimal() else text
