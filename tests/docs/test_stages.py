"""The packages of the stages give their position, in the order of the pipeline."""

import ast
import re
from typing import Final

import pytest

from tests.docs.repository import ROOT

STAGES: Final = ("api", "queue", "dispatch", "operators", "events", "callbacks")


@pytest.mark.parametrize(("number", "stage"), list(enumerate(STAGES, start=1)), ids=STAGES)
def test_package_of_a_stage_opens_with_its_position(number: int, stage: str) -> None:
    source = (ROOT / "src" / "waypost" / stage / "__init__.py").read_text(encoding="utf-8")

    opening = ast.get_docstring(ast.parse(source)) or ""

    assert opening.startswith(f"Stage {number} of 6, {stage}: ")


def test_architecture_draws_the_stages_in_the_same_order() -> None:
    drawing = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

    drawn = {int(number): stage for number, stage in re.findall(r"\b([1-6]) ([a-z]+)", drawing)}

    assert drawn == dict(enumerate(STAGES, start=1))


def test_map_lists_the_stages_in_the_same_order() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

    listed = re.findall(r"^src/waypost/(\w+)/ +stage ([1-6]): ", architecture, re.MULTILINE)

    assert listed == [(stage, str(number)) for number, stage in enumerate(STAGES, start=1)]
