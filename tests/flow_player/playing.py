"""A Flow in the hands of a test: each step changes what `view` shows."""

import json
from typing import Any

from tests.support.flow_components import screen
from waypost.flow_player import player
from waypost.flow_player.play_state import FlowEffect, FlowState, PlayedStep, PlayerView, ShownComponent, UploadedFile
from waypost.flow_player.playable import PlayableFlow, read_playable
from waypost.flow_player.views import view_screen


class FlowInHand:
    """A Flow that is played, from its entry screen or by an endpoint."""

    def __init__(self, flow: dict[str, Any], **options: Any) -> None:
        self.flow: PlayableFlow = read_playable(json.dumps(flow))
        opened = player.open_flow(self.flow, **options)
        self.state: FlowState = opened.state
        self.effect: FlowEffect | None = opened.effect

    @property
    def view(self) -> PlayerView:
        return view_screen(self.flow, self.state)

    def shown(self, name: str) -> ShownComponent:
        """Return an input by its name, or the first component of a type."""
        return next(one for one in self.view.components if name in (one.name, one.type))

    def texts(self) -> list[str]:
        return [one.text for one in self.view.components if one.text]

    def follow(self, step: PlayedStep) -> FlowEffect | None:
        self.state, self.effect = step.state, step.effect
        return step.effect

    def fill(self, **values: Any) -> FlowEffect | None:
        for name, value in values.items():
            self.follow(player.enter_value(self.flow, self.state, name, value))
        return self.effect

    def tap(self, target: str) -> FlowEffect | None:
        return self.follow(player.tap(self.flow, self.state, target))

    def back(self) -> FlowEffect | None:
        return self.follow(player.go_back(self.flow, self.state))

    def refresh(self) -> FlowEffect | None:
        return self.follow(player.refresh(self.flow, self.state))

    def respond(self, screen_id: str, **data: Any) -> FlowEffect | None:
        return self.follow(player.take_response(self.flow, self.state, {"screen": screen_id, "data": data}))

    def upload(self, name: str, mime_type: str = "image/png", size_bytes: int = 10, media_id: str = "m1") -> None:
        file = UploadedFile(media_id, "a.png", mime_type, size_bytes)
        self.follow(player.add_file(self.flow, self.state, name, file))


def one_screen(*components: dict[str, Any], version: str = "7.3", **members: Any) -> FlowInHand:
    """Return a Flow of one screen with a Footer that completes it with what it names."""
    names = [str(one["name"]) for one in components if "name" in one and one["type"] != "Form"]
    payload = {name: f"${{form.{name}}}" for name in names}
    end = {"type": "Footer", "label": "Send", "on-click-action": {"name": "complete", "payload": payload}}
    flow = {"version": version, "screens": [screen("ONE", *components, end, terminal=True, **members)]}
    return FlowInHand(flow)
