"""The view of a state: everything that the handset shows."""

from typing import Any, Final

from msgspec.structs import replace

from waypost.base.json_values import list_of, object_of, objects_in, text_or_none, texts_in
from waypost.flow_json.components import COMPONENTS
from waypost.flow_json.kinds import NumberKind
from waypost.flow_player.actions import find_missing_data
from waypost.flow_player.evaluation import FlowEvaluator, TooLargeError, member_of, text_of
from waypost.flow_player.field_values import is_list, is_object
from waypost.flow_player.fields import DEFAULT_MAX_CHARS, DEFAULT_MAX_LENGTH, FILE_PICKERS, SELECTIONS, find_problem
from waypost.flow_player.layout import LaidOutComponent, error_message_of, is_required, lay_out
from waypost.flow_player.markdown import parse_markdown
from waypost.flow_player.play_state import (
    GENERAL_ERROR,
    FlowState,
    PlayerView,
    ShownComponent,
    ShownFile,
    ShownImage,
    ShownOption,
)
from waypost.flow_player.playable import PlayableFlow
from waypost.flow_player.summary import label_of

_LIMITS: Final = ("min-date", "max-date", "unavailable-dates", "include-days", "allowed-mime-types")
_STYLES: Final = (
    "font-weight", "strikethrough", "width", "height", "scale-type", "aspect-ratio", "label-variant", "media-size",
    "photo-source",
)  # fmt: skip
_CAPTIONS: Final = ("left-caption", "center-caption", "right-caption")


def view_screen(flow: PlayableFlow, state: FlowState) -> PlayerView:
    """Return what the handset shows."""
    if state.ended:
        summary = state.completion.summary if state.completion is not None else []
        return PlayerView(state.ended, state.screen_id, error=state.error, summary=summary)
    if state.is_closed:
        return PlayerView("closed", state.screen_id)
    if not state.stack:
        return PlayerView("busy" if state.pending is not None else "error", error=state.error)
    try:
        return _view(flow, state)
    except TooLargeError:
        can_go_back = len(state.stack) > 1
        return PlayerView("error", state.screen_id, can_go_back=can_go_back, error=GENERAL_ERROR)


def _view(flow: PlayableFlow, state: FlowState) -> PlayerView:
    evaluator = FlowEvaluator(flow, state)
    components = lay_out(evaluator)
    shown = [_show(evaluator, component, state) for component in components]
    screen = flow.screens[state.screen_id]
    footer = next((one.path for one in shown if one.type == "Footer"), "")
    if footer and not _is_ready(flow, state, evaluator, components):
        shown = [replace(one, enabled=False) if one.path == footer else one for one in shown]
    return PlayerView(
        state="screen" if state.pending is None else "busy",
        screen_id=state.screen_id,
        title=text_of(evaluator.resolve(screen.source.get("title", ""))),
        is_terminal=screen.is_terminal,
        components=shown,
        footer=footer,
        can_go_back=len(state.stack) > 1,
        snackbar=state.snackbar,
    )


def _is_ready(
    flow: PlayableFlow, state: FlowState, evaluator: FlowEvaluator, components: list[LaidOutComponent]
) -> bool:
    """Return False while a required input is not valid, the next screen's data is not there, or a response is awaited."""
    for component in components:
        if (
            component.is_input
            and is_required(component)
            and find_problem(component, evaluator.value_of(component.name))
        ):
            return False
        action = object_of(component.source.get("on-click-action"))
        if component.type == "Footer" and find_missing_data(flow, state, action):
            return False
    return state.pending is None


def _show(evaluator: FlowEvaluator, component: LaidOutComponent, state: FlowState) -> ShownComponent:
    properties = component.properties
    value = evaluator.value_of(component.name) if component.is_input else None
    rule, error = _find_error(evaluator, component, value, state) if component.is_input else ("", "")
    text = properties.get("text", "")
    return ShownComponent(
        path=component.path,
        type=component.type,
        name=component.name,
        label=label_of(component),
        text=" ".join(texts_in(text)) if is_list(text) else text_of(text),
        description=component.text("description"),
        helper_text=_join_ends(properties.get("helper-text")),
        value=[] if component.type in FILE_PICKERS else value,
        error=error,
        rule=rule,
        required=is_required(component),
        enabled=component.is_enabled,
        input_type=_input_type(component),
        mode=component.text("mode"),
        options=_options(component, value),
        files=_files(evaluator, component, value),
        images=_images(component),
        blocks=_blocks(component),
        captions={name: component.text(name) for name in _CAPTIONS if properties.get(name)},
        limits=_limits(component),
        style={name: properties[name] for name in _STYLES if name in properties},
        action=text_or_none(object_of(component.source.get("on-click-action")).get("name")) or "",
    )


def _join_ends(value: Any) -> str:
    """Return a text; of one for each end of a range, both."""
    return " \u2013 ".join(map(text_of, object_of(value).values())) if is_object(value) else text_of(value)


def _input_type(component: LaidOutComponent) -> str:
    return component.text("input-type") or "text" if component.type == "TextInput" else ""


def _find_error(evaluator: FlowEvaluator, component: LaidOutComponent, value: Any, state: FlowState) -> tuple[str, str]:
    """Return the rule and text of the error beside an input: of the Flow, until it is changed, or of the handset."""
    memory = state.memory
    message = error_message_of(evaluator, component)
    if message and component.name not in memory.corrected:
        if is_object(message):  # of a range of days, or of the files of a picker
            text = " ".join(filter(None, map(text_of, object_of(message).values())))
            return ("error-message", text) if text and component.type not in FILE_PICKERS else ("", "")
        return ("error-message", text_of(message)) if text_of(message) else ("", "")
    if memory.is_checked or component.name in memory.values:
        problem = find_problem(component, value)
        if problem is not None:
            return problem.rule, problem.text
    return "", ""


def _options(component: LaidOutComponent, value: Any) -> list[ShownOption]:
    if component.type == "NavigationList":
        return [_show_item(component, one) for one in component.options()]
    if component.type not in SELECTIONS:
        return []
    chosen = list_of(value) if is_list(value) else [value]
    return [
        ShownOption(
            path=f"{component.path}/{one['id']}",
            id=str(one["id"]),
            title=text_of(one.get("title")),
            description=text_of(one.get("description")),
            metadata=text_of(one.get("metadata")),
            enabled=component.is_enabled and one.get("enabled", True) is not False,
            selected=one["id"] in chosen,
            image=text_of(one.get("image")),
            alt_text=text_of(one.get("alt-text")),
            color=text_of(one.get("color")),
        )
        for one in component.options()
    ]


def _show_item(component: LaidOutComponent, one: dict[str, Any]) -> ShownOption:
    main, start = object_of(one.get("main-content")), object_of(one.get("start"))
    return ShownOption(
        path=f"{component.path}/{one['id']}",
        id=str(one["id"]),
        title=text_of(main.get("title")),
        description=text_of(main.get("description")),
        metadata=text_of(main.get("metadata")),
        enabled=one.get("enabled", True) is not False,
        image=text_of(start.get("image")),
        alt_text=text_of(start.get("alt-text")),
        badge=text_of(one.get("badge")),
        tags=texts_in(one.get("tags"))[:3],
        end={name: text_of(text) for name, text in object_of(one.get("end")).items()},
    )


def _files(evaluator: FlowEvaluator, component: LaidOutComponent, value: Any) -> list[ShownFile]:
    if component.type not in FILE_PICKERS:
        return []
    message = error_message_of(evaluator, component)
    return [
        ShownFile(
            media_id=str(one["media_id"]),
            file_name=text_of(one.get("file_name")),
            mime_type=text_of(one.get("mime_type")),
            size_bytes=int(one.get("size_bytes", 0)),
            error=text_of(member_of(message, str(one["media_id"]))),
        )
        for one in objects_in(value)
    ]


def _images(component: LaidOutComponent) -> list[ShownImage]:
    if component.type == "Image":
        return [ShownImage(component.text("src"), component.text("alt-text"))]
    images = objects_in(component.properties.get("images"))[:3] if component.type == "ImageCarousel" else []
    return [ShownImage(text_of(one.get("src")), text_of(one.get("alt-text"))) for one in images]


def _blocks(component: LaidOutComponent) -> list[dict[str, Any]]:
    text = component.properties.get("text", "")
    lines = "\n".join(texts_in(text)) if is_list(text) else text_of(text)
    if component.type == "RichText":
        return parse_markdown(lines, is_rich=True)
    return parse_markdown(lines, is_rich=False) if component.source.get("markdown") is True else []


def _limits(component: LaidOutComponent) -> dict[str, Any]:
    """Return the limits of an input that a page can apply, with the operator's defaults."""
    defaults: dict[str, dict[str, Any]] = {
        "TextInput": {"max-chars": DEFAULT_MAX_CHARS},
        "TextArea": {"max-length": DEFAULT_MAX_LENGTH},
    }
    numbers = [one.name for one in COMPONENTS[component.type].properties if isinstance(one.kind, NumberKind)]
    found = {name: component.number(name) for name in numbers if name not in _STYLES}
    others = {name: component.properties[name] for name in _LIMITS if component.properties.get(name)}
    known = {name: value for name, value in found.items() if value is not None}
    return {**defaults.get(component.type, {}), **known, **others}
