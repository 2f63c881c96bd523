"""The example project, run as its own authors would: nothing is there but the installed plugin."""

from pathlib import Path
from typing import Final

from tests.docs.repository import ROOT
from tests.support.inner_pytest import InnerRun, run_pytest
from waypost.testing.runtime.thread import ThreadRuntime

SHOP: Final = ROOT / "examples" / "pytest-shop"
TESTS: Final = {
    "test_customer_is_asked_whether_the_order_is_right",
    "test_tap_cancels_the_order_and_the_customer_reads_so",
    "test_tap_that_is_told_twice_is_answered_once",
    "test_rejected_template_holds_orders_back_and_says_why",
    "test_outage_of_the_operator_delays_a_message_and_doubles_none",
    "test_day_after_the_customer_wrote_a_template_takes_over",
}


def all_passed(run: InnerRun) -> None:
    assert run.code == 0, run.output
    assert run.outcomes == dict.fromkeys(TESTS, "passed")


def test_examples_tests_pass_with_only_the_plugin_installed(tmp_path: Path) -> None:
    run = run_pytest(SHOP, tmp_path / "report.xml", "-W", "error")

    all_passed(run)


def test_examples_tests_pass_with_the_service_as_a_child(tmp_path: Path) -> None:
    run = run_pytest(SHOP, tmp_path / "report.xml", "-W", "error", "--waypost=child")

    all_passed(run)


def test_examples_tests_pass_side_by_side_against_one_running_service(tmp_path: Path) -> None:
    """Faults and settings are each partner's own; what moves the shared clock moves it for all."""
    engine = ThreadRuntime({"rates": "false"})
    env_file = tmp_path / "waypost-dev.env"
    env_file.write_text("".join(f"{name}={text}\n" for name, text in engine.variables.items()))

    run = run_pytest(SHOP, tmp_path / "report.xml", "-p", "xdist", "-n", "2", f"--waypost={env_file}")

    engine.stop()
    all_passed(run)
