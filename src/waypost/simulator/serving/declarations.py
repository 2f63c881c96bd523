"""The declarations of settings, fleets and script steps, from which a client such as the console draws its forms."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from waypost.base.invalid_values import accepted_values
from waypost.simulator.apis.control_operations import ControlOperations
from waypost.simulator.handsets.control_fleets import FleetBody
from waypost.simulator.state.script_steps import MAX_SCRIPT_STEPS, STEP_ACTIONS, STEP_TRIGGERS
from waypost.simulator.state.settings import ChangeableSettings

# fmt: off
SETTING_TITLES: Final = {
    "Templates": {
        "review_delay_ms":   "Review after",
        "marketing_words":   "Marketing words",
        "templates_at_most": "Templates per account",
        "check_languages":   "Accept only the operator's languages",
        "check_references":  "Uploads, media and flows must exist",
        "strict":            "Strict template rules",
    },
    "Delivery": {
        "deliver_after_ms":  "Delivered after",
        "read_after_ms":     "Read after",
        "skips_delivered":   "Skip the delivered status of read messages",
        "window_at_once":    "Reject messages outside the window at once",
    },
    "Limits": {
        "limits":               "Apply limits",
        "calls_per_hour":       "Management calls per hour",
        "throttle_status":      "Status for too many messages",
        "send_retry_after":     "Send Retry-After with 429",
        "messaging_limit_code": "Error above the messaging limit",
    },
    "Webhooks": {
        "batch_at_most":     "Maximum updates per POST",
        "gather_ms":         "Time between POSTs",
        "statuses_version":  "Format of statuses",
        "statuses_contacts": "Include contacts with statuses",
        "user_ids":          "Include business-scoped user IDs",
        "contact_book":      "Keep hidden numbers in a contact book",
    },
    "Flows": {
        "endpoint_timeout_ms":  "Time limit of endpoints",
        "endpoint_ping_ms":     "Time between health checks of endpoints",
        "flow_token_signature": "Sign flow tokens",
    },
}
_FLEET_TITLES: Final = {
    "name":           "Name",
    "first":          "First number",
    "count":          "Number of phones",
    "open_window_to": "Open window for",
    "seed":           "Seed",
}
_STEP_MEMBER_TITLES: Final = {
    # do and member          title                         what an absent one means
    ("reply",   "text"):     ("Text",                       ""),
    ("tap",     "text"):     ("Button label",               "any"),
    ("tap",     "index"):    ("Button index, from 0",       "any"),
    ("tap",     "card"):     ("Card index, from 0",         "no card"),
    ("react",   "text"):     ("Emoji",                      ""),
    ("respond", "response"): ("Values of the form, as JSON", ""),
    ("play",    "steps"):    ("Steps in the Flow, as JSON", ""),
    ("offline", "for_ms"):   ("For, in seconds",            "until turned on"),
}
# fmt: on

operation = ControlOperations()


class StepMemberDeclaration(Struct, frozen=True):
    """A member that an action of a script may have or needs; `absent` is what its absence means."""

    do: str
    name: str
    title: str
    absent: str
    is_required: bool


class StepsDeclaration(Struct, frozen=True):
    """The triggers and actions of a script's steps, each with its text, and an action's own members."""

    at_most: int
    on: dict[str, str]
    do: dict[str, str]
    members: list[StepMemberDeclaration]


@operation(
    "GET", "/control/declarations", settings=list[dict[str, Any]], fleet=list[dict[str, Any]], steps=StepsDeclaration
)
async def show_declarations() -> dict[str, Any]:
    """Return the fields of the settings and of a fleet as JSON Schemas with titles, and the steps of scripts."""
    return {
        "settings": [
            {"group": group, **field}
            for group, titles in SETTING_TITLES.items()
            for field in _declare_fields(ChangeableSettings, titles)
        ],
        "fleet": _declare_fields(FleetBody, _FLEET_TITLES),
        "steps": declare_steps(),
    }


def declare_steps() -> dict[str, Any]:
    """Return the triggers and actions of a script's steps, each with its text, and an action's own members."""
    return {
        "at_most": MAX_SCRIPT_STEPS,
        "on": {name: text for name, (text, _) in STEP_TRIGGERS.items()},
        "do": {name: text for name, (text, _, _) in STEP_ACTIONS.items()},
        "members": [
            {
                "do": do,
                "name": name,
                "title": _STEP_MEMBER_TITLES[do, name][0],
                "absent": _STEP_MEMBER_TITLES[do, name][1],
                "is_required": name in required,
            }
            for do, (_, required, optional) in STEP_ACTIONS.items()
            for name in (*required, *optional)
        ],
    }


def _declare_fields(struct: type[Struct], titles: dict[str, str]) -> list[dict[str, Any]]:
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    return [
        {
            "name": name,
            "accepted": accepted_values(fields[name].type),
            "is_required": fields[name].required,
            **msgspec.json.schema(fields[name].type),
            "title": title,
        }
        for name, title in titles.items()
    ]
