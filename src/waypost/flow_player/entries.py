"""Things that a person can tap on a screen, and the actions that a changed selection runs.

Source: public pages "Components" and "Flow JSON", actions: without `on-unselect-action` the select action runs for both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import list_of, object_of, object_or_none, text_or_none
from waypost.flow_player.actions import find_missing_data, run_action
from waypost.flow_player.evaluation import FlowEvaluator
from waypost.flow_player.field_values import is_list
from waypost.flow_player.fields import MULTIPLE_SELECTIONS, SELECTIONS
from waypost.flow_player.layout import LaidOutComponent, lay_out
from waypost.flow_player.play_state import FlowState, PlayedStep, StepNotAllowed
from waypost.flow_player.playable import PlayableFlow

READ_MORE: Final = "Read more"
_CLICK, _SELECT, _UNSELECT = "on-click-action", "on-select-action", "on-unselect-action"


@dataclass(frozen=True)
class Tappable:
    """Something that can be tapped.

    Attributes:
        path: of a component, or below it.
        text: what a person reads on it.
        action: as it is written; empty if it has none.
        value_after: the value of the input after the tap; None if it changes none.
        item_id: of an item of a navigation list.
        obstacle: why it cannot be tapped now; empty if it can.
    """

    path: str
    text: str
    component: LaidOutComponent
    action: dict[str, Any]
    value_after: Any = None
    item_id: str = ""
    obstacle: str = ""


def list_tappables(flow: PlayableFlow, state: FlowState) -> list[Tappable]:
    """Return what can be tapped on the current screen, in order."""
    evaluator = FlowEvaluator(flow, state)
    found: list[Tappable] = []
    for component in lay_out(evaluator):
        action = object_of(component.source.get(_CLICK))
        match component.type:
            case "Footer":
                obstacle = find_missing_data(flow, state, action)
                found.append(Tappable(component.path, component.text("label"), component, action, obstacle=obstacle))
            case "EmbeddedLink":
                found.append(Tappable(component.path, component.text("text"), component, action))
            case "OptIn":
                label, path = component.text("label"), component.path
                value = evaluator.value_of(component.name) is not True
                found.append(Tappable(path, label, component, {}, value_after=value))
                if action:
                    found.append(Tappable(f"{path}/read-more", READ_MORE, component, action))
            case "NavigationList":
                found.extend(_list_items(component, action))
            case kind if kind in SELECTIONS:
                found.extend(_list_options(component, evaluator.value_of(component.name)))
            case _:
                pass
    return found


def _list_items(component: LaidOutComponent, action: dict[str, Any]) -> Iterator[Tappable]:
    for item in component.options():
        title = text_or_none(object_of(item.get("main-content")).get("title")) or ""
        own = object_or_none(item.get(_CLICK)) or action
        obstacle = "is disabled" if item.get("enabled", True) is False else ""
        path, item_id = f"{component.path}/{item['id']}", str(item["id"])
        yield Tappable(path, title, component, own, item_id=item_id, obstacle=obstacle)


def _list_options(component: LaidOutComponent, value: Any) -> Iterator[Tappable]:
    for option in component.options():
        option_id = str(option["id"])
        after: Any = option_id
        if component.type in MULTIPLE_SELECTIONS:
            chosen = list_of(value)
            after = [one for one in chosen if one != option_id] if option_id in chosen else [*chosen, option_id]
        yield Tappable(f"{component.path}/{option_id}", str(option.get("title")), component, {}, value_after=after)


def find_tappable(tappables: list[Tappable], target: str) -> Tappable:
    """Return what has a path, or else a text.

    Raises:
        StepNotAllowed: nothing has, or more than one.
    """
    found = [one for one in tappables if one.path == target] or [one for one in tappables if one.text == target]
    if len(found) == 1:
        if found[0].obstacle and found[0].item_id:
            raise StepNotAllowed(target[:100], found[0].obstacle)
        return found[0]
    if found:
        raise StepNotAllowed(target[:100], "stands for several", ", ".join(one.path for one in found)[:500])
    texts = ", ".join(f"{one.text} ({one.path})" for one in tappables)
    raise StepNotAllowed(target[:100], "is nothing that can be tapped here", texts[:1000] or "nothing on this screen")


def fire_selection(
    flow: PlayableFlow, state: FlowState, component: LaidOutComponent, before: Any, after: Any
) -> PlayedStep:
    """Run the actions of a changed input; the first request to the endpoint is the last of them."""
    for action in _changed_actions(component, before, after):
        step = run_action(flow, state, action, component.name)
        if step.effect is not None:
            return step
        state = step.state
    return PlayedStep(state)


def _changed_actions(component: LaidOutComponent, before: Any, after: Any) -> Iterator[dict[str, Any]]:
    if before == after:
        return
    own = component.source
    if component.type not in SELECTIONS:
        name = _SELECT if after else _UNSELECT
        yield from _actions_of(own, name)
        return
    old = list_of(before) if is_list(before) else [before] if before else []
    new = list_of(after) if is_list(after) else [after] if after else []
    removed, added = [one for one in old if one not in new], [one for one in new if one not in old]
    options = {one["id"]: one for one in component.options()}
    for name, changed in ((_UNSELECT, removed), (_SELECT, added)):
        for one in changed:
            yield from _actions_of(options.get(one, {}), name)
    if removed and (_UNSELECT in own or not added):
        yield from _actions_of(own, _UNSELECT)
    if added:
        yield from _actions_of(own, _SELECT)


def _actions_of(owner: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    action = object_or_none(owner.get(name)) or object_or_none(owner.get(_SELECT))
    if action is not None:
        yield action
