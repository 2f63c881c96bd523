"""What a door refuses: a form, put beside the field that it is about; and what it does not know."""

from collections.abc import Generator
from contextlib import contextmanager

from waypost.client.door import DoorRefused
from waypost.console.not_there import NotThere

_ABOUT_THE_FORM = range(400, 500)


def words_of(refused: DoorRefused) -> str:
    """The refusal in the door's words.

    Raises:
        DoorRefused: it is not about what somebody has typed.
    """
    if refused.status not in _ABOUT_THE_FORM or refused.status in (401, 403, 404):
        raise refused
    return f"{refused.message} {refused.why}".strip()


@contextmanager
def known_or(missing: str, *, status: int = 404) -> Generator[None]:
    """Around a call about something that the partner may not have.

    Args:
        missing: what is said then.
        status: of the answer by which the door says so.

    Raises:
        NotThere: there is none.
    """
    try:
        yield
    except DoorRefused as refused:
        if refused.status == status:
            raise NotThere(missing) from refused
        raise
