"""Multipart bodies of text fields, and the error for an unreadable one."""

from waypost.base.http.multipart import MultipartReader
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.forms import MAX_FORM_FIELDS, Form


def unreadable_multipart_error(reason: str) -> ApiError:
    """Return the error for a body that cannot be read."""
    return ApiError(ErrorCode.UNREADABLE, f"The body must be whole and readable multipart/form-data: {reason}.")


def read_form_parts(content_type: str, body: bytes) -> Form:
    """Parse a whole multipart body of text parts as a form; PHP's curl sends an array this way.

    Raises:
        ApiError: an unreadable body, too many parts, a file, not UTF-8, or U+0000.
    """
    reader = MultipartReader(
        content_type, make_error=unreadable_multipart_error, max_parts=MAX_FORM_FIELDS, errors="strict"
    )
    pairs: list[tuple[str, bytearray]] = []
    try:
        for part in reader.feed(body):
            if isinstance(part, bytes):
                pairs[-1][1].extend(part)
            elif part.file_name is not None:
                raise ApiError(ErrorCode.UNREADABLE, f"{part.name} must be text, and no file.")
            else:
                pairs.append((part.name, bytearray()))
        reader.finish()
        form = [(name, value.decode("utf-8", "strict")) for name, value in pairs]
    except UnicodeDecodeError as error:
        raise ApiError(ErrorCode.UNREADABLE, "The form must be UTF-8.") from error
    if any("\0" in name or "\0" in value for name, value in form):
        raise ApiError(ErrorCode.UNREADABLE, "The form must not contain the character U+0000.")
    return Form(form)
