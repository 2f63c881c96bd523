"""Errors at a form field: those of an API that are about it, and the check of a number."""

from waypost.client.api_client import ApiResponseError

_ABOUT_THE_FORM = range(400, 500)


def form_error(error: ApiResponseError) -> str:
    """Return the explanation of an API error, or its documented text if it has none.

    Raises:
        ApiResponseError: the error is not about the form.
    """
    if error.status not in _ABOUT_THE_FORM or error.status in (401, 403, 404):
        raise error
    text = error.explanation or error.message
    return text[:1].upper() + text[1:]


def is_number_up_to(maximum: int, text: str, *, minimum: int = 1) -> bool:
    """True if a text is a whole number from the minimum to the maximum, in ASCII digits."""
    return text.isascii() and text.isdecimal() and len(text) <= len(str(maximum)) and minimum <= int(text) <= maximum
