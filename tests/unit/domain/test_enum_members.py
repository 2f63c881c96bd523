"""Enums may grow: their members are never unpacked by position."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import waypost

SOURCES: Final = Path(waypost.__file__).parent
ENUM: Final = re.compile(r"^class (\w+)\([\w., ]*Enum\):", re.MULTILINE)
UNPACKED: Final = re.compile(r"^ *[\[(]?[\w*. ]+,[\w*., ]*[\])]? = (?P<value>\w+)$", re.MULTILINE)

ADD_MEMBER: Final = """
from enum import StrEnum
from waypost.domain.templates import %(module)s as module
members = {one.name: one.value for one in module.%(name)s}
module.%(name)s = StrEnum("%(name)s", members | {"ADDED": "ADDED"})
from waypost.domain.templates import rules
assert "ADDED" in rules.%(name)s.__members__
"""


def test_no_enum_is_unpacked() -> None:
    modules = {path: path.read_text() for path in SOURCES.rglob("*.py")}
    enums = {name for text in modules.values() for name in ENUM.findall(text)}
    unpacked = [
        f"{path.relative_to(SOURCES)}: {match[0].strip()}"
        for path, text in modules.items()
        for match in UNPACKED.finditer(text)
        if match["value"] in enums
    ]

    assert {"TemplateType", "QueueName"} <= enums
    assert unpacked == []
    assert UNPACKED.search("    (first, *others) = TemplateType\n")


@pytest.mark.parametrize(("module", "name"), [("types", "TemplateType"), ("template", "Category")])
def test_rules_are_loaded_with_an_additional_member(module: str, name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ADD_MEMBER % {"module": module, "name": name}],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
