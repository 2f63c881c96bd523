"""The files, pages and links of the repository."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

_GENERATED_FOLDERS: Final = {".git", ".venv", "__pycache__", "dist", "htmlcov", "node_modules"}
_FENCED: Final = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
_CODE_SPAN: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@cache
def repository_files() -> tuple[Path, ...]:
    """Return every file that is, or would be, in the repository; without git, every file outside generated folders."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return tuple(sorted(_walk(ROOT)))
    return tuple(sorted(path for name in names.split("\0") if name and (path := ROOT / name).is_file()))


def pages() -> list[Path]:
    """Return every Markdown page; changelog fragments are not pages."""
    return [path for path in repository_files() if path.suffix == ".md" and path.parent.name != "changelog.d"]


def name_of(path: Path) -> str:
    """Return the path as pages write it: from the root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def links_of(page: Path) -> list[str]:
    """Return the targets of a page's links, in order, without those in code samples."""
    prose = _CODE_SPAN.sub("", _FENCED.sub("", page.read_text(encoding="utf-8")))
    return _LINK.findall(prose)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    prose = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(prose)}


def samples_of(page: Path, language: str) -> list[str]:
    """Return the fenced code samples of one language, without their fences."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def journey_of(page: Path, mark: str = "journey") -> str:
    """Return the shell commands of the samples below a comment, such as `<!-- journey -->`."""
    text = page.read_text(encoding="utf-8")
    samples = re.findall(rf"^<!-- {re.escape(mark)} -->\n```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert samples, f"{page} has no {mark}"
    return "".join(samples)


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in _GENERATED_FOLDERS or path.name.endswith("_cache"):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.suffix != ".pyc":
            yield path
