"""Values of a number and its account are those that the documents list, whatever the operator reports."""

import pytest

from tests.support.builders import APP
from waypost.domain.direct_calls import BusinessStatus, NumberStatus
from waypost.domain.event import LimitEvent
from waypost.wire.account import business_account_info, ratings_object

# fmt: off
STATUSES = [  # Source: ledger 1.9, `waba/info`
    ("CONNECTED",    "CONNECTED",    "ACTIVE"),
    ("FLAGGED",      "FLAGGED",      "ACTIVE"),
    ("PENDING",      "PENDING",      "ACTIVE"),
    ("UNVERIFIED",   "PENDING",      "ACTIVE"),
    ("RATE_LIMITED", "RESTRICTED",   "ACTIVE"),
    ("MIGRATED",     "DISCONNECTED", "ACTIVE"),
    ("BANNED",       "RESTRICTED",   "BANNED"),
    ("NEW_STATUS",   "UNKNOWN",      "ACTIVE"),
    ("",             "UNKNOWN",      "ACTIVE"),
]
# fmt: on


@pytest.mark.parametrize(("status", "docker_status", "account_status"), STATUSES)
def test_status_of_a_number_is_one_of_the_documented(status: str, docker_status: str, account_status: str) -> None:
    info = business_account_info(APP, NumberStatus(True, status), BusinessStatus("ACTIVE"))

    assert (info["dockerStatus"], info["accountStatus"]) == (docker_status, account_status)


def test_values_that_the_operator_does_not_report_have_documented_ones() -> None:
    info = business_account_info(APP, NumberStatus(True, quality="NA"), BusinessStatus("ACTIVE"))

    assert (info["messagingLimit"], info["phoneQuality"], info["throughput"]) == (
        "NOT_SET", "UNKNOWN", "NOT_APPLICABLE",
    )  # fmt: skip


def test_errors_of_a_number_have_a_code_as_text_and_no_other_members() -> None:
    errors = [{"error_code": 141006, "error_description": "No payment.", "possible_solution": "Pay.", "x": 1}, "text"]

    info = business_account_info(APP, NumberStatus(False, errors=errors), BusinessStatus("ACTIVE"))

    assert info["errors"] == [
        {"error_code": "141006", "error_description": "No payment.", "possible_solution": "Pay."},
        {"error_code": "", "error_description": "", "possible_solution": ""},
    ]


@pytest.mark.parametrize(("quality", "shown"), [("GREEN", "Green"), ("RED", "Red"), ("NA", "Unknown"), ("", "Unknown")])
def test_ratings_spell_the_quality_as_documented(quality: str, shown: str) -> None:
    ratings = ratings_object(LimitEvent("UPGRADE", "TIER_250", "TIER_2K", 5), quality)

    assert ratings == {
        "oldLimit": "TIER_250", "currentLimit": "TIER_2K", "event": "upgrade", "eventTime": 5, "phoneQuality": shown,
    }  # fmt: skip
