"""The example project, run as its authors would: with only the installed plugin."""

from pathlib import Path
from typing import Final

from pytest_waypost.dev_process import start_dev
from tests.docs.repository import ROOT
from tests.support.inner_pytest import InnerRun, run_pytest

SHOP: Final = ROOT / "examples" / "pytest-shop"
TESTS: Final = {
    "test_order_is_confirmed_by_a_message",
    "test_tap_cancels_the_order_and_the_customer_is_notified",
    "test_repeated_tap_is_processed_once",
    "test_orders_are_not_confirmed_while_the_template_is_rejected",
    "test_outage_of_the_operator_delays_a_message_without_duplicating_it",
    "test_template_replaces_a_text_after_the_window_has_closed",
}


def assert_all_passed(run: InnerRun) -> None:
    assert run.code == 0, run.output
    assert run.outcomes == dict.fromkeys(TESTS, "passed")


def test_examples_tests_pass_with_only_the_plugin_installed(tmp_path: Path) -> None:
    run = run_pytest(SHOP, tmp_path / "report.xml", "-W", "error")

    assert_all_passed(run)


def test_examples_tests_pass_concurrently_against_one_running_service(tmp_path: Path) -> None:
    """Faults and settings belong to each partner; an advance of the shared clock affects all."""
    process = start_dev("", [], tmp_path)
    env_file = tmp_path / "waypost-dev.env"
    env_file.write_text("".join(f"{name}={text}\n" for name, text in process.wait_until_started().items()))

    run = run_pytest(SHOP, tmp_path / "report.xml", "-p", "xdist", "-n", "2", f"--waypost={env_file}")

    process.stop()
    assert_all_passed(run)
