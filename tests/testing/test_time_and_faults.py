"""The clock that a test controls, and the faults that it arms."""

import threading
from datetime import timedelta

import pytest

from pytest_waypost.client import ApiResponseError
from pytest_waypost.partner import Partner
from pytest_waypost.service import Service
from tests.testing.conftest import MakePartner


def test_window_closes_a_day_after_the_last_message(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")
    partner.send_text("In time", ann)
    ann.wait_for_message("In time")

    before = partner.clock.now
    after = partner.clock.advance(hours=24, minutes=1)
    partner.send_text("Too late", ann)

    assert partner.wait_for_callback("failed").reason.startswith("131047")
    assert after - before >= timedelta(hours=24)


def test_frozen_clock_changes_only_when_it_is_advanced(partner: Partner) -> None:
    stopped = partner.clock.freeze()

    advanced = partner.clock.advance(seconds=90)

    assert advanced - stopped == timedelta(seconds=90)
    assert partner.clock.now == advanced


def test_clock_runs_again_after_the_test_that_froze_it(make_partner: MakePartner, service: Service) -> None:
    hasty = make_partner("hasty")
    hasty.clock.freeze()
    assert service.control.json("GET", "/clock")["is_frozen"]

    hasty.close()

    assert service.control.json("GET", "/clock")["factor"] == 1


def test_clock_advances_while_other_partners_are_made(partner: Partner, make_partner: MakePartner) -> None:
    other_partners = threading.Thread(target=lambda: [make_partner(f"guest {at}") for at in range(8)])
    other_partners.start()

    times = [partner.clock.wait_until_idle() for _ in range(30)]

    other_partners.join()
    assert times == sorted(times)


def test_outage_ends_after_its_number_of_calls_and_the_message_is_sent_once(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")

    with partner.fault("messages.send", next=3, error=131016) as outage:
        message_id = partner.send_text("At last", ann)
        partner.clock.advance(minutes=5)
        assert outage.hits == 3

    ann.wait_for_message("At last")
    partner.wait_for_callback("delivered", message_id=message_id)
    assert len(ann.inbox) == 1


def test_fault_of_a_webhook_drops_the_operators_webhook(partner: Partner) -> None:
    ann = partner.phone("Ann")
    ann.write("Hi")

    with partner.fault(webhook="delivered", phone=ann, drop=True):
        partner.send_text("Did it arrive?", ann)
        ann.wait_for_message("arrive")
        partner.clock.wait_until_idle()

    assert "delivered" not in [callback.kind for callback in partner.callbacks]


def test_fault_that_a_test_leaves_armed_is_disarmed_with_its_partner(
    make_partner: MakePartner, service: Service
) -> None:
    careless = make_partner("careless")
    fault = careless.fault("templates.create", error=1)

    careless.close()

    armed = service.control.json("GET", "/faults")["faults"]
    assert fault.id not in [str(armed_fault["id"]) for armed_fault in armed]


def test_fault_of_an_unknown_call_is_an_error_that_names_the_known_calls(partner: Partner) -> None:
    with pytest.raises(ApiResponseError, match=r"messages\.send"):
        partner.fault("messages.sent", error=1)


def test_fault_accepts_one_trigger_only(partner: Partner) -> None:
    with pytest.raises(ValueError, match="not next, every"):
        partner.fault("messages.send", next=1, every=2, error=1)
