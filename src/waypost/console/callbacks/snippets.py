"""Code that verifies a signature, in five languages, each with its standard library only."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from starlette.responses import Response

from waypost.console.callbacks.lookup import base_of, standing_of_all
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest


@dataclass(frozen=True, slots=True)
class Language:
    """A programming language, shown as a tab.

    Attributes:
        name: in the URL.
        label: its usual name.
        file: in the folder of snippets.
        since: the oldest version that the snippet runs on.
    """

    name: str
    label: str
    file: str
    since: str


# fmt: off
LANGUAGES: Final = (  # Source: Standard Webhooks 1.0; decision 0043
    Language("python",     "Python",     "verify.py.txt",   "Python 3.8 or newer"),
    Language("javascript", "JavaScript", "verify.mjs.txt",  "Node.js 16 or newer"),
    Language("php",        "PHP",        "verify.php.txt",  "PHP 8.0 or newer"),
    Language("java",       "Java",       "Verify.java.txt", "Java 11 or newer"),
    Language("go",         "Go",         "verify.go.txt",   "Go 1.18 or newer"),
)
# fmt: on


async def show_snippets(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page with the snippet of one language."""
    name = visit.query("language", "python")
    chosen = next((language for language in LANGUAGES if language.name == name), LANGUAGES[0])
    return await desk.page(
        visit, "callbacks/verify.html",
        languages=LANGUAGES, chosen=chosen, code=snippet(chosen), root=base_of(visit),
        subscriptions=await standing_of_all(desk, visit),
    )  # fmt: skip


@cache
def snippet(language: Language) -> str:
    """Return the source code of a snippet."""
    folder = resources.files("waypost.console") / "pages" / "callbacks" / "snippets"
    return (folder / language.file).read_text("utf-8").rstrip()
