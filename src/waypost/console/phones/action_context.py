"""The phone and chat of an action, and the response to it: shared by all actions of a phone."""

from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.phones.error_texts import told
from waypost.console.phones.selection import Place, Places, needed
from waypost.console.phones.view_models import app_of, control_of
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import App


@dataclass(frozen=True, slots=True)
class Hand:
    """Carries out actions of one phone through the simulator control API."""

    desk: PageTools
    visit: PageRequest
    phone: str

    async def do(self, call: str, body: dict[str, Any], method: str = "POST") -> Any:
        """Call the control API for the phone: `messages`, `tap`, …; empty: the phone itself.

        Raises:
            NotMeant: the API returned an error; explains it in plain words.
        """
        path = f"/control/phones/{self.phone}" + (f"/{call}" if call else "")
        return await told(control_of(self.desk).json(method, path, body))

    async def state(self) -> dict[str, Any]:
        """Return the phone as the control API shows it."""
        phone: dict[str, Any] = await told(control_of(self.desk).get(f"/control/phones/{self.phone}?limit=0"))
        return phone

    def done(self, said: str, chat: str = "", *, tells: bool = False) -> Response:
        """Return the response to an action; empty for an open page, because its stream shows the result.

        Args:
            said: notice for a page that is loaded again.
            chat: the business number of the chat.
            tells: an open page shows the notice too, because the handset does not show the result.
        """
        self.desk.parts.pulse.beat()  # the simulator's state is not in our store, so no commit wakes the streams
        if self.visit.is_quiet:
            return JSONResponse({"said": said}) if tells else Response(status_code=204)
        return self.desk.go(Places((Place(self.phone, chat),)).address, said)


def hand_of(desk: PageTools, visit: PageRequest) -> Hand:
    """Return the phone in the path.

    Raises:
        NotMeant: it is not a phone number.
    """
    control_of(desk)
    return Hand(desk, visit, needed(str(visit.path["phone"])))


def chat_of(visit: PageRequest) -> App:
    """Return the partner's app with the number in the path.

    Raises:
        NotThere: it is not a number of the partner.
    """
    return app_of(visit, str(visit.path["number"]))
