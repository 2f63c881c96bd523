"""The simulator's one ASGI application: the Graph side, and the control door beside it."""

from waypost.simulator.control.door import ControlDoor
from waypost.simulator.graph.door import GraphDoor
from waypost.simulator.parts import Parts
from waypost.simulator.requests import Receive, Scope, Send


class Application:
    """Sends each request to its door. Its lifespan does nothing: whoever serves it opens the simulator."""

    def __init__(self, parts: Parts) -> None:
        self._graph = GraphDoor(parts)
        self._control = ControlDoor(parts)
        self.answering = 0
        """How many requests of the Graph side are being answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            if scope["path"].startswith("/control/"):
                await self._control(scope, receive, send)
                return
            self.answering += 1
            try:
                await self._graph(scope, receive, send)
            finally:
                self.answering -= 1


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
