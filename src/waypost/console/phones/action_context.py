"""What all acts at a phone have in common: whose chat it is, and what is answered."""

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
    """A phone in somebody's hand, and the control door through which it acts."""

    desk: PageTools
    visit: PageRequest
    phone: str

    async def do(self, call: str, body: dict[str, Any], method: str = "POST") -> Any:
        """Have the phone do something: `messages`, `tap`, …; empty: the phone itself.

        Raises:
            NotMeant: it was refused; says why in plain words.
        """
        path = f"/control/phones/{self.phone}" + (f"/{call}" if call else "")
        return await told(control_of(self.desk).json(method, path, body))

    async def state(self) -> dict[str, Any]:
        """The phone as the control door shows it."""
        found: dict[str, Any] = await told(control_of(self.desk).get(f"/control/phones/{self.phone}?limit=0"))
        return found

    def done(self, said: str, chat: str = "", *, tells: bool = False) -> Response:
        """The answer to an act: nothing where the page is open, because its stream shows what came of it.

        Args:
            said: for a page that is loaded anew.
            chat: the business number whose chat it was.
            tells: whether it is said on an open page, too: the handset shows nothing of it.
        """
        self.desk.parts.pulse.beat()  # the simulator's own state is no commit of ours
        if self.visit.is_quiet:
            return JSONResponse({"said": said}) if tells else Response(status_code=204)
        return self.desk.go(Places((Place(self.phone, chat),)).address, said)


def hand_of(desk: PageTools, visit: PageRequest) -> Hand:
    """The phone that the path names.

    Raises:
        NotMeant: it is no number.
    """
    control_of(desk)
    return Hand(desk, visit, needed(str(visit.path["phone"])))


def chat_of(visit: PageRequest) -> App:
    """The partner's app whose number the path names.

    Raises:
        NotThere: it is none of the partner's.
    """
    return app_of(visit, str(visit.path["number"]))
