"""Templates with reviews that a test decides."""

import pytest

from pytest_waypost.failures import NotSeen
from pytest_waypost.partner import Partner
from pytest_waypost.service import Service


def test_template_is_pending_until_its_test_approves_it(partner: Partner) -> None:
    template = partner.create_template("order_ready", "Hi {{1}}, it is ready", approved=False)
    partner.clock.advance(days=2)
    assert partner.template("order_ready").status == "PENDING"

    approved = partner.approve_template("order_ready")

    assert (approved.id, approved.status) == (template.id, "APPROVED")


def test_rejection_is_in_the_record_and_in_a_callback(partner: Partner) -> None:
    partner.create_template("order_ready", "Hi {{1}}, it is ready", approved=False)

    rejected = partner.reject_template("order_ready", "SCAM")

    callback = partner.wait_for_callback("status-update")
    assert (rejected.status, callback.reason) == ("REJECTED", "SCAM")
    assert "SCAM" in rejected.reason


def test_paused_template_is_approved_again_after_three_hours(partner: Partner) -> None:
    template = partner.create_template("order_ready", "Hi {{1}}, it is ready")

    assert partner.pause_template(template).status == "PAUSED"
    partner.clock.advance(hours=4)

    assert partner.template(template).status == "APPROVED"


def test_disabled_template_is_disabled(partner: Partner) -> None:
    template = partner.create_template("order_ready", "Hi {{1}}, it is ready")

    assert partner.disable_template(template).status == "DISABLED"


def test_unknown_template_is_a_lookup_error(partner: Partner) -> None:
    with pytest.raises(LookupError, match="no template nowhere"):
        partner.template("nowhere")


def test_approving_a_template_that_was_never_submitted_fails(partner: Partner, service: Service) -> None:
    service.within_s, before = 0.05, service.within_s

    with pytest.raises(NotSeen, match=r"no template nowhere reached the operator within 0\.05 s"):
        partner.approve_template("nowhere")

    service.within_s = before


def test_template_that_the_operator_rejects_at_once_fails_with_its_reason(partner: Partner) -> None:
    with pytest.raises(NotSeen) as missed:
        partner.create_template("order_ready", "Hi {{1}}")

    first, *rest = str(missed.value).splitlines()
    assert first == "template order_ready was not reviewed: the operator rejected it at once"
    assert "  order_ready (en_US) is REJECTED Variables can't be at the start or end of the template." in rest
