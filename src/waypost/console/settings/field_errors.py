"""What an API refuses of a form, put beside the field that it is about."""

from waypost.client.api_client import ApiResponseError

_ABOUT_THE_FORM = range(400, 500)


def words_of(refused: ApiResponseError) -> str:
    """The refusal in the door's words.

    Raises:
        DoorRefused: it is not about what somebody has typed.
    """
    if refused.status not in _ABOUT_THE_FORM or refused.status in (401, 403, 404):
        raise refused
    return f"{refused.message} {refused.explanation}".strip()
