"""Errors of an API, shown at the form field that they are about."""

from waypost.client.api_client import ApiResponseError

_ABOUT_THE_FORM = range(400, 500)


def words_of(refused: ApiResponseError) -> str:
    """Return the text of an API error.

    Raises:
        ApiResponseError: the error is not about the form.
    """
    if refused.status not in _ABOUT_THE_FORM or refused.status in (401, 403, 404):
        raise refused
    return f"{refused.message} {refused.explanation}".strip()
