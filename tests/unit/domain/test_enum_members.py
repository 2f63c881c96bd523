"""Enums may grow: their members are never unpacked by position."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import waypost

SOURCES: Final = Path(waypost.__file__).parent

ADD_MEMBER: Final = """
from enum import StrEnum
from waypost.domain.templates import %(module)s as module
members = {one.name: one.value for one in module.%(name)s}
module.%(name)s = StrEnum("%(name)s", members | {"ADDED": "ADDED"})
from waypost.domain.templates import rules
assert "ADDED" in rules.%(name)s.__members__
"""


def test_no_enum_is_unpacked() -> None:
    modules = {path: ast.parse(path.read_text()) for path in SOURCES.rglob("*.py")}
    enums = {
        node.name
        for module in modules.values()
        for node in module.body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Enum") for base in node.bases)
    }
    unpacked = [
        f"{path.relative_to(SOURCES)}:{node.lineno}"
        for path, module in modules.items()
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple | ast.List)
        and isinstance(node.value, ast.Name)
        and node.value.id in enums
    ]

    assert {"TemplateType", "QueueName"} <= enums
    assert unpacked == []


@pytest.mark.parametrize(("module", "name"), [("types", "TemplateType"), ("template", "Category")])
def test_rules_are_loaded_with_an_additional_member(module: str, name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ADD_MEMBER % {"module": module, "name": name}],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
