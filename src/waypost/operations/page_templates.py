"""The templates of the pages that need no sign-in; loaded at the first request, because few processes serve one."""

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@cache
def page_templates() -> "Environment":
    """Return the templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("waypost.operations", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
