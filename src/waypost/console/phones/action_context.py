"""The phone and chat of an action, and the response to it: shared by all actions of a phone."""

from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.phones.error_texts import translate_errors
from waypost.console.phones.selection import PhoneSelection, SelectedPhone, require_digits
from waypost.console.phones.view_models import apps_by_number_id, get_app_by_number, get_control
from waypost.console.route import Endpoint
from waypost.console.web.errors import AdministratorRequired
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import App


@dataclass(frozen=True, slots=True)
class PhoneClient:
    """Carries out actions of one phone through the simulator control API."""

    tools: PageTools
    page_request: PageRequest
    phone: str

    async def call(self, action: str, body: dict[str, Any], method: str = "POST") -> Any:
        """Call the control API for the phone: `messages`, `tap`, …; empty: the phone itself.

        Raises:
            InvalidPageRequest: the API returned an error; explains it in plain words.
        """
        path = f"/control/phones/{self.phone}" + (f"/{action}" if action else "")
        return await translate_errors(get_control(self.tools).json(method, path, body))

    async def read_state(self) -> dict[str, Any]:
        """Return the phone as the control API shows it."""
        phone: dict[str, Any] = await translate_errors(
            get_control(self.tools).get(f"/control/phones/{self.phone}?limit=0")
        )
        return phone

    def respond(self, notice: str, chat: str = "", *, notifies: bool = False) -> Response:
        """Return the response to an action; empty for an open page, because its stream shows the result.

        Args:
            notice: notice for a page that is loaded again.
            chat: the business number of the chat.
            notifies: an open page shows the notice too, because the handset does not show the result.
        """
        self.tools.services.change_signal.signal()  # the simulator's state is not in our store, so no commit wakes the streams
        if self.page_request.is_quiet:
            return JSONResponse({"notice": notice}) if notifies else Response(status_code=204)
        return self.tools.redirect(PhoneSelection((SelectedPhone(self.phone, chat),)).address, notice)


def require_own_phone(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint, for users who may use the phone in its path.

    Raises, before the endpoint is called:
        AdministratorRequired: other partners' numbers chat with the phone, and the request is about the phone as
            such, or is in a chat while the partner has none with it. Source: decision 0073.
    """

    async def checked(tools: PageTools, page_request: PageRequest) -> Response:
        path = page_request.path_params
        await check_phone_owner(tools, page_request, str(path["phone"]), in_chat="number" in path or "position" in path)
        return await endpoint(tools, page_request)

    return checked


async def check_phone_owner(tools: PageTools, page_request: PageRequest, phone: str, *, in_chat: bool) -> None:
    """Check that a user may use a phone; see `require_own_phone`."""
    if tools.is_administrator(page_request):
        return
    control, own = get_control(tools), apps_by_number_id(page_request).keys()
    chats = (await translate_errors(control.get(f"/control/phones/{require_digits(phone)}/chats")))["chats"]
    chatting = {chat["phone_number_id"] for chat in chats if chat["last"] is not None}
    if chatting - own and not (in_chat and chatting & own):
        raise AdministratorRequired


def get_phone_client(tools: PageTools, page_request: PageRequest) -> PhoneClient:
    """Return the phone in the path.

    Raises:
        InvalidPageRequest: it is not a phone number.
    """
    get_control(tools)
    return PhoneClient(tools, page_request, require_digits(str(page_request.path_params["phone"])))


def get_chat_app(page_request: PageRequest) -> App:
    """Return the partner's app with the number in the path.

    Raises:
        NotFound: it is not a number of the partner.
    """
    return get_app_by_number(page_request, str(page_request.path_params["number"]))
