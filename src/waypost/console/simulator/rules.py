"""How the simulated operator behaves: its settings as a form, made from a table."""

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
        name: as the control door calls it.
        hint: what it means.
        empty: what an empty field means; empty: it must be filled in.
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
        Rule("review_delay_ms",      "seconds", "Review after", "From submission to review.", "reviews wait for a person"),
        Rule("marketing_words",      "words",   "Words of marketing", "One on each line. A UTILITY template that says one of them is taken as MARKETING, or rejected."),
        Rule("templates_at_most",    "whole",   "Templates of one account", "Each language counts."),
        Rule("check_languages",      "flag",    "Languages must be those that the operator lists"),
        Rule("check_references",     "flag",    "Uploads, media and flows must be known", "Those a template or a message refers to."),
        Rule("strict",               "flag",    "As strict as the operator", "100 creations an hour, no two templates of the same wording, no names of its samples."),
    )),
    ("Delivery", (
        Rule("deliver_after_ms",     "seconds", "Delivered after", "From sent to delivered, for phones that do not say otherwise."),
        Rule("read_after_ms",        "seconds", "Read after", "From delivered to read.", "phones read when they are told"),
        Rule("skips_delivered",      "flag",    "What is read is never told as delivered"),
        Rule("window_at_once",       "flag",    "A closed window is refused at once", "Otherwise the message is taken and fails afterwards."),
    )),
    ("Limits", (
        Rule("limits",               "flag",    "Limits apply", "Throughput of a number, messages to one phone, edits of a template."),
        Rule("calls_per_hour",       "whole",   "Management calls an hour", "Of one account.", "as the operator counts"),
        Rule("throttle_status",      "choice",  "Too many messages are refused with", "", "", (("429", "HTTP 429"), ("400", "HTTP 400, as some have seen"))),
        Rule("tells_retry_after",    "flag",    "A 429 says when to come again", "The header Retry-After."),
        Rule("messaging_limit_code", "choice",  "Beyond the messaging limit the error is", "", "", (("131048", "131048"), ("130429", "130429"))),
    )),
    ("Webhooks", (
        Rule("batch_at_most",        "whole",   "Updates in one POST at most"),
        Rule("gather_ms",            "seconds", "Between two POSTs at least", "Real time; under load updates gather meanwhile."),
        Rule("statuses_version",     "choice",  "Statuses look as in", "", "", (("v24", "v24 and later"), ("v23", "v23 and earlier, with conversation"))),
        Rule("statuses_contacts",    "flag",    "Statuses come with contacts"),
        Rule("user_ids",             "flag",    "People have a business-scoped id beside the number"),
    )),
)
# fmt: on


async def show_rules(desk: PageTools, visit: PageRequest) -> Response:
    """All of them as they are."""
    settings = await control_of(desk).get("/control/settings")
    return await tab(desk, visit, "rules", groups=RULES, typed=typed_of(settings), wrong_field="", wrong="")


async def change_rules(desk: PageTools, visit: PageRequest) -> Response:
    """Change those that the form gives another value; they stay changed over a restart."""
    form = await visit.form()
    typed = {name: value for name, value in form.items() if isinstance(value, str)}
    control = control_of(desk)
    before = await control.get("/control/settings")
    wish = {name: value for name, value in settings_of(typed).items() if value != before[name]}
    if not wish:
        return desk.go(PATH, "Nothing has changed.", kind="info")
    try:
        await control.json("PUT", "/control/settings", wish)
    except ApiResponseError as refused:
        named, (said, _) = refused.top_field, reason_of(refused)
        return await tab(desk, visit, "rules", 400, groups=RULES, typed=typed, wrong_field=named, wrong=said)
    labels = [rule.label for _, rules in RULES for rule in rules if rule.name in wish]
    return desk.go(PATH, f"Changed: {', '.join(labels)}.")


def typed_of(settings: dict[str, Any]) -> dict[str, str]:
    """What the form's fields hold for settings as they are."""
    return {
        rule.name: _typed(rule, settings[rule.name]) for _, rules in RULES for rule in rules if rule.name in settings
    }


def settings_of(typed: dict[str, str]) -> dict[str, Any]:
    """Settings as the control door takes them, from what was typed.

    Raises:
        NotMeant: a number of seconds is none.
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
