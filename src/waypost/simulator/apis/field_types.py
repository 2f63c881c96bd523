"""Types of fields that several requests of the control API share; a type's `Meta` is its only check.

`accepts` adds a description of the accepted values where the limits do not give one.
"""

from typing import Annotated, Any, Final

from msgspec import Meta


def accepts(text: str, pattern: str | None = None, **limits: Any) -> Meta:
    """Return limits with a description of the accepted values, for the member `accepted` of an error."""
    return Meta(pattern=pattern, extra={"accepted": text}, **limits)


USER_ID: Final = r"^[A-Z]{2}\.(ENT\.)?[0-9A-Za-z]{1,128}$"  # Source: facts 7.5
Text = Annotated[str, Meta(min_length=1, max_length=4096)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
FileName = Annotated[str, Meta(max_length=240)]
Id = Annotated[str, accepts("1 to 32 digits", "^[0-9]{1,32}$")]
Digits = Annotated[str, accepts("8 to 15 digits, the first not 0", "^\\+?[1-9][0-9]{7,14}$")]
BusinessNumber = Annotated[Digits, accepts("a business number's digits")]
DelayMs = Annotated[int, Meta(ge=0, le=7 * 24 * 3600 * 1000)]
HoldMs = Annotated[DelayMs | None, accepts("0 to 604800000, or null: no end")]
WaitMs = Annotated[int, Meta(ge=0, le=60_000)]
Position = Annotated[int, Meta(ge=0, le=2**62)]
Throughput = Annotated[int, Meta(ge=1, le=100_000)]
