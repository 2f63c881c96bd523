"""One request to the console: who asks, for which app, with which form."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from waypost.console.web.not_found import NotMeant
from waypost.console.web.sessions import Session
from waypost.domain.app import App
from waypost.domain.partner import Partner

MOST_BYTES: Final = 1024 * 1024
"""Of a form without a file."""
MOST_FILE_BYTES: Final = 101 * 1024 * 1024
"""Of a form with a file: the largest document the channel takes, and what is around it."""
MOST_FIELDS: Final = 500
MOST_FILES: Final = 16
"""Inputs in which no file was chosen count too: a carousel's editor has eleven."""

QUIET: Final = "x-waypost-quiet"
"""A header of requests that a module of ours makes: their refusals are JSON, and the page stays."""


@dataclass(slots=True)
class PageRequest:
    """A request with all that the guard has found out about it.

    Attributes:
        session: None on the pages that everybody may see.
        apps: all of the partner's, oldest first.
        named_app: the one in the path.
        chosen_app_id: the one that was looked at last; may be nobody's.
        notices: what the last act had to say, to be shown once.
    """

    request: Request
    session: Session | None = None
    apps: list[App] = field(default_factory=list[App])
    named_app: App | None = None
    chosen_app_id: str = ""
    notices: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    _form: FormData | None = None

    @property
    def partner(self) -> Partner:
        """Who is signed in; on a page for partners there is always one."""
        assert self.session is not None, "a page for everybody asks for a partner"  # noqa: S101  a defect
        return self.session.partner

    @property
    def app(self) -> App:
        """The app in the path, which is the partner's."""
        assert self.named_app is not None, "a path without an app asks for one"  # noqa: S101  a defect
        return self.named_app

    @property
    def shown_app(self) -> App | None:
        """The app that the navigation leads to: that in the path, the last one, or the first."""
        if self.named_app is not None:
            return self.named_app
        chosen = [app for app in self.apps if app.id == self.chosen_app_id]
        return (chosen or self.apps or [None])[0]

    @property
    def is_quiet(self) -> bool:
        """Whether a module of ours asks, and not a browser for a page."""
        return QUIET in self.request.headers

    @property
    def path(self) -> Mapping[str, Any]:
        """The parts of the path that vary."""
        return self.request.path_params

    def query(self, name: str, otherwise: str = "") -> str:
        """A field of the query, without spaces around it."""
        return self.request.query_params.get(name, otherwise).strip()

    async def form(self) -> FormData:
        """The form, read once: urlencoded, or multipart with files on disk.

        Raises:
            NotMeant: it is too large, or cannot be read.
        """
        if self._form is None:
            self._form = await _read_form(self.request, takes_files=self.session is not None)
        return self._form

    async def field(self, name: str, otherwise: str = "") -> str:
        """A text of the form, as it was sent; U+0000 and half characters are refused."""
        value = (await self.form()).get(name, otherwise)
        if isinstance(value, UploadFile):
            raise NotMeant(f"The field {name} holds a file.", "Send a text.")
        return value

    async def flag(self, name: str) -> bool:
        """Whether a box of the form is ticked."""
        return (await self.field(name)) in ("on", "true", "1", "yes")

    async def file(self, name: str) -> UploadFile | None:
        """A file of the form; None where none was chosen."""
        value = (await self.form()).get(name)
        if isinstance(value, UploadFile) and (value.filename or value.size):
            return value
        return None

    async def close(self) -> None:
        """Let go of the form's files."""
        if self._form is not None:
            await self._form.close()


async def _read_form(request: Request, *, takes_files: bool) -> FormData:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    most = MOST_FILE_BYTES if takes_files and kind == "multipart/form-data" else MOST_BYTES
    told = request.headers.get("content-length", "0")
    if told.isdecimal() and (len(told) > 18 or int(told) > most):
        raise NotMeant(f"That is larger than {most // 1024 // 1024} MB.", "Send something smaller.")
    counted, receive = 0, request.receive

    async def count() -> Any:
        nonlocal counted
        message = await receive()
        counted += len(message.get("body", b""))
        if counted > most:
            raise NotMeant(f"That is larger than {most // 1024 // 1024} MB.", "Send something smaller.")
        return message

    counting = Request(request.scope, count)
    try:
        form = await counting.form(max_files=MOST_FILES, max_fields=MOST_FIELDS, max_part_size=MOST_BYTES)
    except (NotMeant, asyncio.CancelledError):
        raise
    except Exception as error:  # the readers of forms raise errors of their own
        raise NotMeant("The form cannot be read.") from error
    for name, value in form.multi_items():
        if not _can_be_kept(name):
            await form.close()
            raise NotMeant("The form has a field that no page of ours has.")
        texts = (value,) if isinstance(value, str) else (value.filename, value.content_type)
        if not all(_can_be_kept(text or "") for text in texts):
            await form.close()
            raise NotMeant(f"The field {name} holds a character that cannot be kept.", "Remove it and try again.")
    return form


def _can_be_kept(text: str) -> bool:
    """Whether a store keeps it and a page shows it; a form may say that it is in any encoding."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # half a character
        return False
