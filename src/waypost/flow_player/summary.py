"""The answers that a person sees by a tap on the sent message.

Source: public page "Flow JSON", sensitive: which inputs are masked, hidden or shown.
"""

from typing import Any, Final

from waypost.base.json_values import list_of, object_of, texts_in
from waypost.flow_player.evaluation import FlowEvaluator, text_of
from waypost.flow_player.field_values import is_list, is_object
from waypost.flow_player.fields import FILE_PICKERS, SELECTIONS, text_of_option
from waypost.flow_player.layout import LaidOutComponent, lay_out
from waypost.flow_player.play_state import FlowState, SummaryRow
from waypost.flow_player.playable import PlayableFlow

MASK: Final = "••••••••"
_MAX_CHARS: Final = 200


def summarize(flow: PlayableFlow, state: FlowState) -> list[SummaryRow]:
    """Return the answers of the screens on the way to the end, in order."""
    rows: list[SummaryRow] = []
    for screen_id in state.stack:
        shown = FlowState(state.flow_token, [screen_id], state.screens)
        evaluator = FlowEvaluator(flow, shown)
        sensitive = texts_in(flow.screens[screen_id].source.get("sensitive"))
        for component in lay_out(evaluator):
            if component.is_input:
                text = _summarize_value(component, evaluator.value_of(component.name), component.name in sensitive)
                if text:
                    rows.append(SummaryRow(label_of(component), text))
    return rows


def label_of(component: LaidOutComponent) -> str:
    """Return the label of an input; that of a range is its title."""
    label = component.properties.get("label")
    if is_object(label):
        return component.text("title") or text_of(next(iter(object_of(label).values()), ""))
    return text_of(label)


def _summarize_value(component: LaidOutComponent, value: Any, is_sensitive: bool) -> str:
    """Return an answer as it is shown; empty if it is hidden, or there is none."""
    if value in ("", [], {}, None, False):
        return ""
    if component.text("input-type") in {"password", "passcode"}:
        return ""
    if component.type in FILE_PICKERS:
        return "" if is_sensitive else f"{len(list_of(value))} files"
    if component.type == "OptIn":
        return "Yes"
    if is_sensitive:
        return MASK
    if component.type in SELECTIONS:
        chosen = list_of(value) if is_list(value) else [value]
        return ", ".join(text_of_option(component, one) for one in chosen)[:_MAX_CHARS]
    if is_object(value):
        return " \u2013 ".join(text_of(one) for one in object_of(value).values())[:_MAX_CHARS]
    return text_of(value)[:_MAX_CHARS]
