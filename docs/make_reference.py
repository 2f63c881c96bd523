"""Generate the pages of `docs/reference/`, and the specification page, from the tables in the code.

`make reference` writes them, and a test compares each page with the output of this module. So the pages always
match the code.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from docs.api_pages import admin_page, error_texts_page, errors_page, rates_page, routes_page, rules_page
from docs.decision_pages import INDEX
from docs.evidence_pages import (
    compatibility_page,
    coverage_page,
    decisions_page,
    differences_page,
    promises_page,
    source_page,
    specification_page,
    testing_page,
)
from docs.flow_pages import flow_json_page
from docs.message_pages import callbacks_page, operator_codes_page, states_page
from docs.operation_table import operation_table
from docs.service_pages import commands_page, metrics_page, settings_page
from docs.simulator_pages import control_page, faults_page, graph_page
from docs.source_pages import NAMES
from waypost.client.operations import TABLE

FOLDER = Path(__file__).parent / "reference"
SPECIFICATION = Path(__file__).parent / "sources" / "specification.md"
PROMISES = Path(__file__).parent / "contributing" / "promises.md"

# fmt: off
PAGES: dict[str, Callable[[], str]] = {
    "settings.md":       settings_page,
    "admin.md":          admin_page,
    "errors.md":         errors_page,
    "error-texts.md":    error_texts_page,
    "callbacks.md":      callbacks_page,
    "rates.md":          rates_page,
    "template-rules.md": rules_page,
    "flow-json.md":     flow_json_page,
    "routes.md":         routes_page,
    "states.md":         states_page,
    "operator-codes.md": operator_codes_page,
    "commands.md":       commands_page,
    "control.md":        control_page,
    "graph.md":          graph_page,
    "faults.md":         faults_page,
    "metrics.md":        metrics_page,
    "testing.md":        testing_page,
    "compatibility.md":  compatibility_page,
    "api-coverage.md":   coverage_page,
    "differences.md":    differences_page,
}
# fmt: on
PAGES_ELSEWHERE: dict[Path, Callable[[], str]] = {
    PROMISES: promises_page,
    SPECIFICATION: specification_page,
    INDEX: decisions_page,
    **{SPECIFICATION.with_name(f"{name}.md"): partial(source_page, name) for name in NAMES},
}


def main() -> int:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    TABLE.write_text(operation_table(), encoding="utf-8")
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
    for path, make in PAGES_ELSEWHERE.items():
        path.write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
