"""One request to the console: its session, apps, query and form; and the errors that become error pages."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from waypost.console.web.sessions import Session
from waypost.console.web.zones import ZONE_COOKIE, DisplayZone, find_zone, reader_zone
from waypost.domain.app import App
from waypost.domain.partner import Partner


class NotFound(Exception):
    """The object does not exist or belongs to another partner; the response is the same."""

    def __init__(self, text: str = "Page not found.") -> None:
        super().__init__(text)
        self.text = text


class InvalidPageRequest(Exception):
    """The request is one that none of our pages sends, or its form is out of date."""

    def __init__(self, text: str, hint: str = "Go back, reload the page and try again.") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint


class AdministratorRequired(Exception):
    """The page or action is only for the administrator."""

    text = "Administrator access required: this concerns all partners of the service."
    hint = "Enter the admin token under Settings, Administrator."


class MethodNotAllowed(Exception):
    """The path allows other methods only."""

    def __init__(self, method: str, allowed: Collection[str]) -> None:
        self.allowed = ", ".join(sorted(allowed))
        if method in ("GET", "HEAD"):
            self.text = "There is no page at this address."
            self.hint = "This address is for a button of the console. Go back and use the button."
        else:
            self.text = f"Method {method[:20]} is not allowed here."
            self.hint = f"Allowed: {self.allowed}."
        super().__init__(self.text)


MAX_FORM_BYTES: Final = 1024 * 1024
"""Maximum size of a form without a file."""
MAX_UPLOAD_FORM_BYTES: Final = 101 * 1024 * 1024
"""Maximum size of a form with a file: the channel's largest document and its multipart overhead."""
MAX_FORM_FIELDS: Final = 500
MAX_FORM_FILES: Final = 16
"""Inputs without a chosen file count too; the editor of a carousel has eleven."""

QUIET_HEADER: Final = "x-waypost-quiet"
"""Header of requests from our scripts: errors are returned as JSON, and the page stays open."""


@dataclass(slots=True)
class PageRequest:
    """A request with the session and app that the guard has looked up.

    Attributes:
        session: None without a sign-in, on public pages.
        apps: all apps of the partner, oldest first.
        named_app: the app in the path.
        chosen_app_id: the app viewed last, from a cookie; may not exist.
        notices: notices of the last action, shown once.
        searches_hidden_text: it searches in texts that the user does not see, which is audited.
    """

    request: Request
    session: Session | None = None
    apps: list[App] = field(default_factory=list[App])
    named_app: App | None = None
    chosen_app_id: str = ""
    notices: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    searches_hidden_text: bool = False
    _form: FormData | None = None

    @property
    def partner(self) -> Partner:
        """The signed-in partner; only for routes that require a session."""
        assert self.session is not None, "a public page used the partner"  # noqa: S101  a defect
        return self.session.partner

    @property
    def app(self) -> App:
        """The partner's app in the path."""
        assert self.named_app is not None, "a path without an app used one"  # noqa: S101  a defect
        return self.named_app

    @property
    def shown_app(self) -> App | None:
        """The app of the navigation: the one in the path, the last viewed, or the first."""
        if self.named_app is not None:
            return self.named_app
        chosen = [app for app in self.apps if app.id == self.chosen_app_id]
        return (chosen or self.apps or [None])[0]

    @property
    def is_quiet(self) -> bool:
        """True if one of our scripts sent the request, not a page navigation."""
        return QUIET_HEADER in self.request.headers

    @property
    def zone(self) -> DisplayZone:
        """The time zone of every time that the response shows."""
        return reader_zone(self.request.cookies)

    @property
    def browser_zone(self) -> DisplayZone | None:
        """The browser's time zone; None if it is unknown, as without JavaScript."""
        return find_zone(self.request.cookies.get(ZONE_COOKIE, ""))

    @property
    def path_and_query(self) -> str:
        """The address of the page, for a form that returns to it; of a page that a form returned, only the path."""
        url = self.request.url
        return f"{url.path}?{url.query}" if url.query and self.request.method == "GET" else url.path

    @property
    def path_params(self) -> Mapping[str, Any]:
        """The path parameters."""
        return self.request.path_params

    def query(self, name: str, default: str = "") -> str:
        """Return a query parameter without surrounding spaces."""
        return self.request.query_params.get(name, default).strip()

    async def form(self) -> FormData:
        """Return the form, parsed once: urlencoded, or multipart with files on disk.

        Raises:
            InvalidPageRequest: the form is too large or cannot be parsed.
        """
        if self._form is None:
            self._form = await _read_form(self.request, takes_files=self.session is not None)
        return self._form

    async def field(self, name: str, default: str = "") -> str:
        """Return a text field of the form unchanged; U+0000 and unpaired surrogates are rejected."""
        value = (await self.form()).get(name, default)
        if isinstance(value, UploadFile):
            raise InvalidPageRequest(f"The field {name} contains a file.", "Send a text.")
        return value

    async def is_checked(self, name: str) -> bool:
        """True if a checkbox of the form is checked."""
        return (await self.field(name)) in ("on", "true", "1", "yes")

    async def file(self, name: str) -> UploadFile | None:
        """Return a file of the form; None if none was chosen."""
        value = (await self.form()).get(name)
        if isinstance(value, UploadFile) and (value.filename or value.size):
            return value
        return None

    async def close(self) -> None:
        """Close the form's files."""
        if self._form is not None:
            await self._form.close()


async def _read_form(request: Request, *, takes_files: bool) -> FormData:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    max_bytes = MAX_UPLOAD_FORM_BYTES if takes_files and kind == "multipart/form-data" else MAX_FORM_BYTES
    too_large = InvalidPageRequest(
        f"The form is larger than {max_bytes // 1024 // 1024} MB.", "Send a smaller file or text."
    )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and (len(length) > 18 or int(length) > max_bytes):
        raise too_large
    counted, receive = 0, request.receive

    async def count() -> Any:
        nonlocal counted
        message = await receive()
        counted += len(message.get("body", b""))
        if counted > max_bytes:
            raise too_large
        return message

    counting = Request(request.scope, count)
    try:
        form = await counting.form(max_files=MAX_FORM_FILES, max_fields=MAX_FORM_FIELDS, max_part_size=MAX_FORM_BYTES)
    except (InvalidPageRequest, asyncio.CancelledError):
        raise
    except Exception as error:  # form parsers raise errors of their own
        raise InvalidPageRequest("The form cannot be read.") from error
    for name, value in form.multi_items():
        if not _is_storable(name):
            await form.close()
            raise InvalidPageRequest("The form has an unknown field.")
        texts = (value,) if isinstance(value, str) else (value.filename, value.content_type)
        if not all(_is_storable(text or "") for text in texts):
            await form.close()
            raise InvalidPageRequest(
                f"The field {name} contains a character that cannot be stored.", "Remove it and try again."
            )
    return form


def _is_storable(text: str) -> bool:
    """True if the text can be stored and shown; a form may declare any encoding."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return False
