"""Errors of an API, shown at the form field that they are about."""

from waypost.client.api_client import ApiResponseError

_ABOUT_THE_FORM = range(400, 500)


def form_error(error: ApiResponseError) -> str:
    """Return the text of an API error.

    Raises:
        ApiResponseError: the error is not about the form.
    """
    if error.status not in _ABOUT_THE_FORM or error.status in (401, 403, 404):
        raise error
    return f"{error.message} {error.explanation}".strip()
