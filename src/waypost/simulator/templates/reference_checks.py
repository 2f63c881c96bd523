"""What a submitted template refers to: uploads of a fitting kind, and flows of its account."""

from typing import Final

from waypost.base.json_values import texts_in
from waypost.simulator.errors import template_refused
from waypost.simulator.media.references import HEADER_KINDS, Known
from waypost.simulator.templates.drafts import Draft

_UNKNOWN: Final = "The header_handle {handle!r} was not given by a resumable upload."


def check_references(draft: Draft, known: Known) -> None:
    """Hold the handles of media headers, and the flows of buttons, against what is known.

    Raises:
        GraphRefused: code 100, "Invalid parameter".

    Source: facts 2.2, 6.2.
    """
    for one in (draft, *draft.cards()):
        _check_handle(one, known)
        _check_flows(one, known)


def _check_handle(draft: Draft, known: Known) -> None:
    wished = HEADER_KINDS.get(draft.parts.get("HEADER", {}).get("format", ""))
    if wished is None:
        return
    given = draft.example_of("HEADER").get("header_handle")
    handle = given if isinstance(given, str) else next(iter(texts_in(given)), "")
    kind = known.upload_kind(handle)
    if kind is None:
        raise template_refused(None, _UNKNOWN.format(handle=handle[:80]))
    if not kind.startswith(wished):
        raise template_refused(None, f"The header's example is of the type {kind}, which does not fit its format.")


def _check_flows(draft: Draft, known: Known) -> None:
    for button in draft.buttons():
        flow_id = button.get("flow_id")
        if button["type"] != "FLOW" or flow_id is None:
            continue
        flow = known.flow(str(flow_id))
        if flow is None or flow.status in ("DEPRECATED", "BLOCKED"):
            raise template_refused(None, f"The flow {flow_id} does not exist in this account, or cannot be used.")
