"""Code that verifies a signature, in five languages, each with its standard library only."""

from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from starlette.responses import Response

from waypost.console.callbacks.lookup import callbacks_path, list_subscriptions
from waypost.console.page_request import PageRequest


class SnippetLanguage(NamedTuple):
    """A programming language, shown as a tab: its name in the URL, and the file in the folder of snippets."""

    name: str
    label: str
    file: str
    min_version: str


SNIPPET_LANGUAGES: Final = (  # Source: Standard Webhooks 1.0; decision 0043
    SnippetLanguage("python", "Python", "verify.py.txt", "Python 3.8 or newer"),
    SnippetLanguage("javascript", "JavaScript", "verify.mjs.txt", "Node.js 16 or newer"),
    SnippetLanguage("php", "PHP", "verify.php.txt", "PHP 8.0 or newer"),
    SnippetLanguage("java", "Java", "Verify.java.txt", "Java 11 or newer"),
    SnippetLanguage("go", "Go", "verify.go.txt", "Go 1.18 or newer"),
)


async def show_snippets(request: PageRequest) -> Response:
    """Return the page with the snippet of one language."""
    name = request.query("language", "python")
    chosen = next((language for language in SNIPPET_LANGUAGES if language.name == name), SNIPPET_LANGUAGES[0])
    return await request.page(
        "callbacks/verify.html",
        languages=SNIPPET_LANGUAGES, chosen=chosen, code=load_snippet(chosen), root=callbacks_path(request),
        subscriptions=await list_subscriptions(request),
    )  # fmt: skip


@cache
def load_snippet(language: SnippetLanguage) -> str:
    """Return the source code of a snippet."""
    folder = resources.files("waypost.console") / "pages" / "callbacks" / "snippets"
    return (folder / language.file).read_text("utf-8").rstrip()
