"""The page about integration tests: its samples are a project whose tests pass, or fail as shown."""

import re
from pathlib import Path
from typing import Final

from tests.docs.repository import ROOT, samples_of
from tests.support.inner_pytest import run_pytest

PAGE: Final = ROOT / "docs" / "how-to" / "test-your-integration.md"
FAILING: Final = "test_reminder_arrives"


def test_samples_of_the_page_are_a_project_with_the_shown_test_results(tmp_path: Path) -> None:
    (settings,) = samples_of(PAGE, "ini")
    (tmp_path / "pytest.ini").write_text(settings, encoding="utf-8")
    for sample in samples_of(PAGE, "python"):
        name = sample.partition("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(sample, encoding="utf-8")

    run = run_pytest(tmp_path, tmp_path / "report.xml", "--override-ini=pythonpath=.")

    failed = [name for name, outcome in run.outcomes.items() if outcome != "passed"]
    assert failed == [FAILING], run.output
    assert len(run.outcomes) == 9
    (shown,) = samples_of(PAGE, "text")
    assert strip_varying_parts(shown) in strip_varying_parts(run.report_texts[FAILING])


def strip_varying_parts(text: str) -> str:
    """Return the text without times, ids and indentation."""
    plain = re.sub(r"^(E +)?(pytest_waypost\.failures\.)?", "", text, flags=re.MULTILINE)
    plain = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]+|\d\d:\d\d:\d\d\.\d{3}", "", plain)
    return "\n".join(line.strip() for line in plain.splitlines())
