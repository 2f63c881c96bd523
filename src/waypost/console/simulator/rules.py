"""The rules page: settings of the simulated operator, as a form made from a table."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import reason_of
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import control_of, tab
from waypost.console.simulator.numbers import seconds_as_ms, whole
from waypost.console.web.page_request import PageRequest

PATH: Final = "/simulator/rules"
Kind = Literal["seconds", "whole", "flag", "choice", "words"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One setting.

    Args:
        name: of the control API's member.
        hint: an explanation.
        empty: the meaning of an empty field; empty: the field is required.
        choices: values and labels.
    """

    name: str
    kind: Kind
    label: str
    hint: str = ""
    empty: str = ""
    choices: tuple[tuple[str, str], ...] = ()


# fmt: off
RULES: Final[tuple[tuple[str, tuple[Rule, ...]], ...]] = (  # Source: simulator/settings.py
    ("Templates", (
        Rule("review_delay_ms",      "seconds", "Review after", "From submission to automatic review.", "reviews are manual"),
        Rule("marketing_words",      "words",   "Marketing words", "One per line. A UTILITY template that contains one is stored as MARKETING, or rejected."),
        Rule("templates_at_most",    "whole",   "Templates per account", "Each language counts."),
        Rule("check_languages",      "flag",    "Accept only the operator's languages"),
        Rule("check_references",     "flag",    "Uploads, media and flows must exist", "Those that a template or message refers to."),
        Rule("strict",               "flag",    "Strict template rules", "At most 100 new templates per hour, no duplicate content, no names of the operator's samples."),
    )),
    ("Delivery", (
        Rule("deliver_after_ms",     "seconds", "Delivered after", "From sent to delivered, for phones without their own delay."),
        Rule("read_after_ms",        "seconds", "Read after", "From delivered to read.", "messages are read manually"),
        Rule("skips_delivered",      "flag",    "Skip the delivered status of read messages"),
        Rule("window_at_once",       "flag",    "Reject messages outside the window at once", "Otherwise they are accepted and fail later."),
    )),
    ("Limits", (
        Rule("limits",               "flag",    "Apply limits", "Throughput of a number, messages to one phone, edits of a template."),
        Rule("calls_per_hour",       "whole",   "Management calls per hour", "Per account.", "the operator's own limit"),
        Rule("throttle_status",      "choice",  "Status for too many messages", "", "", (("429", "HTTP 429"), ("400", "HTTP 400, as sometimes observed"))),
        Rule("tells_retry_after",    "flag",    "Send Retry-After with 429"),
        Rule("messaging_limit_code", "choice",  "Error code above the messaging limit", "", "", (("131048", "131048"), ("130429", "130429"))),
    )),
    ("Webhooks", (
        Rule("batch_at_most",        "whole",   "Maximum updates per POST"),
        Rule("gather_ms",            "seconds", "Minimum time between two POSTs", "Real time; under load, updates are batched."),
        Rule("statuses_version",     "choice",  "Format of statuses", "", "", (("v24", "v24 and later"), ("v23", "v23 and earlier, with conversation"))),
        Rule("statuses_contacts",    "flag",    "Include contacts with statuses"),
        Rule("user_ids",             "flag",    "Include business-scoped user IDs"),
    )),
)
# fmt: on


async def show_rules(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page with the current settings."""
    settings = await control_of(desk).get("/control/settings")
    return await tab(desk, visit, "rules", groups=RULES, typed=typed_of(settings), wrong_field="", wrong="")


async def change_rules(desk: PageTools, visit: PageRequest) -> Response:
    """Change the settings that differ from the form; changes survive a restart."""
    form = await visit.form()
    typed = {name: value for name, value in form.items() if isinstance(value, str)}
    control = control_of(desk)
    before = await control.get("/control/settings")
    changes = {name: value for name, value in settings_of(typed).items() if value != before[name]}
    if not changes:
        return desk.go(PATH, "No changes.", kind="info")
    try:
        await control.json("PUT", "/control/settings", changes)
    except ApiResponseError as error:
        field, (text, _) = error.top_field, reason_of(error)
        return await tab(desk, visit, "rules", 400, groups=RULES, typed=typed, wrong_field=field, wrong=text)
    labels = [rule.label for _, rules in RULES for rule in rules if rule.name in changes]
    return desk.go(PATH, f"Changed: {', '.join(labels)}.")


def typed_of(settings: dict[str, Any]) -> dict[str, str]:
    """Return the values of the form's fields."""
    return {
        rule.name: _typed(rule, settings[rule.name]) for _, rules in RULES for rule in rules if rule.name in settings
    }


def settings_of(typed: dict[str, str]) -> dict[str, Any]:
    """Return the settings of the form as the control API accepts them.

    Raises:
        NotMeant: a number of seconds is not valid.
    """
    return {rule.name: _value(rule, typed.get(rule.name, "")) for _, rules in RULES for rule in rules}


def _typed(rule: Rule, value: Any) -> str:
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


def _value(rule: Rule, text: str) -> Any:
    match rule.kind:
        case "seconds":
            return seconds_as_ms(text, rule.label)
        case "flag":
            return text == "on"
        case "words":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case "whole":
            return whole(text) if text.strip() else None
        case "choice":
            return whole(text) if text.isdecimal() else text
