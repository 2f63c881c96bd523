"""Every changelog fragment is one sentence, in a file whose name towncrier accepts."""

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.docs.repository import ROOT, name_of

FRAGMENTS: Final = sorted(path for path in (ROOT / "changelog.d").iterdir() if not path.name.startswith("."))
SETTINGS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
KINDS: Final = [kind["directory"] for kind in SETTINGS["towncrier"]["type"]]
LEGAL_NAME: Final = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md")


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=name_of)
def test_fragment_has_a_slug_and_a_kind_for_its_name(fragment: Path) -> None:
    assert LEGAL_NAME.fullmatch(fragment.name)


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=name_of)
def test_fragment_is_one_sentence_on_one_line(fragment: Path) -> None:
    text = fragment.read_text(encoding="utf-8")

    sentence = text.removesuffix("\n")

    assert "\n" not in sentence
    assert re.match(r"[A-Z`]", sentence)
    assert sentence.endswith(".")
    assert not re.search(r"[.!?] +[A-Z`]", sentence), "this reads as more than one sentence"


def test_changelog_has_the_line_after_which_a_release_is_written() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert changelog.count("<!-- towncrier release notes start -->\n") == 1
