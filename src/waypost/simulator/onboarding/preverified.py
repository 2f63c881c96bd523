"""Numbers that a partner verifies before a business claims one in the window; claimed, it is an ordinary number.

A number stays in the partner's pool until it is claimed; one that was never verified leaves it after 90 days.

Source: facts 14.4; the operator's page "Pre-verified phone numbers".
"""

from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.base.clock import DAY_MS
from waypost.base.json_values import list_or_none
from waypost.base.object_ids import make_id
from waypost.simulator.apis.errors import GraphApiError, bad_parameter, coded_error, no_such_object
from waypost.simulator.apis.parameters import one_of, read_parameters
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.numbers.new_numbers import read_number
from waypost.simulator.numbers.registration import CodeParameters, send_requested_code, use_code
from waypost.simulator.onboarding.model import BUSINESS_APP_NUMBERS, PARTNERS, is_in_use
from waypost.simulator.onboarding.session import OnboardingSession
from waypost.simulator.state.accounts import Business, partner_id
from waypost.simulator.state.embedded_signup import BUSINESS_APP, ONLY_ACCESS, ONLY_ACCOUNT
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import NodeKind, page, show_time
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

operation = GraphOperations()

VALID_MS: Final = 90 * DAY_MS
RENEWABLE_MS: Final = 45 * DAY_MS  # before the end of a verification, a new code may be requested


class PreverifiedNumber(Struct, frozen=True):
    """A number in the pool of the business that an app belongs to."""

    preverified_id: str
    app_id: str
    phone_number: str
    added_ms: int
    verified_ms: int | None = None

    @property
    def expires_ms(self) -> int | None:
        """The time when its verification ends, or has ended; None if it was never verified."""
        return None if self.verified_ms is None else self.verified_ms + VALID_MS

    def is_verified(self, now_ms: int) -> bool:
        """True if it needs no code in the window."""
        return self.expires_ms is not None and now_ms < self.expires_ms

    def is_in_pool(self, now_ms: int) -> bool:
        """True unless it was never verified in all the time for that."""
        return self.verified_ms is not None or now_ms < self.added_ms + VALID_MS


PREVERIFIED_NUMBERS: Final = StoredKind(
    "preverified_number", PreverifiedNumber, keys_of=lambda number: [number.preverified_id]
)
"""By digits."""


def find_preverified(state: SimulatorState, preverified_id: str) -> PreverifiedNumber | None:
    """Return a number of a pool by its id; None if it is in none."""
    number = state.cached(PREVERIFIED_NUMBERS).by_further_key.get(preverified_id)
    return number if number is not None and number.is_in_pool(state.clock.now_ms()) else None


def offered_preverified(state: SimulatorState, session: OnboardingSession) -> list[PreverifiedNumber]:
    """Return the numbers that the page offers by `extras.setup.preVerifiedPhone`, in its order; a claimed one is none.

    A number is offered without a verification, too: its code is asked for in the window.
    """
    ids = list_or_none(session.proposes("preVerifiedPhone").get("ids")) or []
    if not ids or session.feature in (BUSINESS_APP, ONLY_ACCESS, ONLY_ACCOUNT):
        return []
    known = [find_preverified(state, one) for one in dict.fromkeys(one for one in ids if isinstance(one, str))]
    used = {number.phone_number for number in state.accounts.numbers.values()}
    return [one for one in known if one and one.app_id == session.app_id and one.phone_number not in used]


class NewPreverifiedParameters(Struct, frozen=True):
    """A number that is added to the pool, with its country code."""

    phone_number: Annotated[str, read_number]


class _PreverifiedView(Struct, frozen=True):
    """A number of the pool at a time."""

    number: PreverifiedNumber
    now_ms: int

    @property
    def status(self) -> str:
        """The status of its verification."""
        if self.number.is_verified(self.now_ms):
            return "VERIFIED"
        return "NOT_VERIFIED" if self.number.verified_ms is None else "EXPIRED"


_STATUSES: Final = ("EXPIRED", "NOT_VERIFIED", "VERIFIED")
_NODE: Final = NodeKind[_PreverifiedView](
    "WhatsAppBusinessPreVerifiedPhoneNumber",
    ("id", "phone_number", "code_verification_status"),
    {
        "id": lambda view: view.number.preverified_id,
        "phone_number": lambda view: view.number.phone_number,
        "code_verification_status": lambda view: view.status,
        "code_verification_time": lambda view: show_time(view.number.verified_ms),
        "verification_expiry_time": lambda view: show_time(view.number.expires_ms),
        "owner_business": lambda view: {"id": partner_id(view.number.app_id)},
    },
)


def _check_partner(state: SimulatorState, call: Call, business_id: str) -> None:
    """Check that a call is for its app's own business. Raises GraphApiError: 200, or it is no solution partner."""
    partner = state.values(PARTNERS).get(call.app_id)
    if business_id != partner_id(call.app_id) or partner is None or not partner.credit_line_id:
        raise coded_error(200, "Only a solution partner may do this, with its own business and numbers.")


@operation("preverified_numbers.create", "POST", Business, "add_phone_numbers")
def add_preverified(transaction: Transaction, call: Call, business: Business) -> dict[str, Any]:
    """Add a number to the pool of a solution partner; return its id, which is good until it is claimed.

    Raises:
        GraphApiError: 100, the number is in use, or in a pool already; 200, as the app has no such pool.
    """
    _check_partner(transaction.state, call, business.business_id)
    digits, now_ms = (
        read_parameters(NewPreverifiedParameters, call.fields).phone_number,
        transaction.state.clock.now_ms(),
    )
    if is_in_use(transaction, digits) or transaction.find(BUSINESS_APP_NUMBERS, digits) is not None:
        raise bad_parameter("Param phone_number: the number is registered with WhatsApp already.")
    known = transaction.find(PREVERIFIED_NUMBERS, digits)
    if known is not None and known.is_in_pool(now_ms):
        raise bad_parameter("Param phone_number: the number is in a pool of pre-verified numbers already.")
    number = PreverifiedNumber(make_id(transaction.state.ids, "preverified number"), call.app_id, digits, now_ms)
    transaction.save(PREVERIFIED_NUMBERS, number, digits)
    return {"id": number.preverified_id}


@operation("preverified_numbers.list", "GET", Business, "preverified_numbers")
async def list_preverified(state: SimulatorState, call: Call, business: Business) -> dict[str, Any]:
    """Return the pool in order of creation; `code_verification_status` selects by it."""
    _check_partner(state, call, business.business_id)
    now_ms, status = state.clock.now_ms(), call.query.get("code_verification_status")
    if status is not None:
        one_of(*_STATUSES)("code_verification_status", status)
    views = [_PreverifiedView(number, now_ms) for number in state.values(PREVERIFIED_NUMBERS).values()]
    pool = [view for view in views if view.number.app_id == call.app_id and view.number.is_in_pool(now_ms)]
    return page(
        call,
        [view for view in pool if status in (None, view.status)],
        lambda view: f"{view.number.added_ms:015d} {view.number.preverified_id}",
        lambda view: _NODE.show(view, call.query.get("fields")),
    )


@operation("preverified_numbers.read", "GET", PreverifiedNumber)
async def show_preverified(state: SimulatorState, call: Call, number: PreverifiedNumber) -> dict[str, Any]:
    """Return a number of the pool: whether it is verified, since when, and until when."""
    _check_partner(state, call, partner_id(number.app_id))
    return _NODE.show(_PreverifiedView(number, state.clock.now_ms()), call.query.get("fields"))


@operation("preverified_numbers.request_code", "POST", PreverifiedNumber, "request_code")
def request_preverified_code(transaction: Transaction, call: Call, number: PreverifiedNumber) -> dict[str, Any]:
    """Send a verification code to a number of the pool, as `numbers.request_code` does.

    Raises:
        GraphApiError: 100, its verification lasts for more than 45 days; 136024, ten codes in three days.
    """
    _check_partner(transaction.state, call, partner_id(number.app_id))
    if number.expires_ms is not None and transaction.state.clock.now_ms() < number.expires_ms - RENEWABLE_MS:
        raise bad_parameter("The number is verified; a new code can be requested 45 days before that ends.")
    send_requested_code(transaction, call, number.preverified_id, number.phone_number)
    return GRAPH_SUCCESS


@operation("preverified_numbers.verify_code", "POST", PreverifiedNumber, "verify_code")
async def verify_preverified_code(state: SimulatorState, call: Call, number: PreverifiedNumber) -> dict[str, Any]:
    """Verify a number of the pool for 90 days by the code that was sent."""
    _check_partner(state, call, partner_id(number.app_id))
    text = read_parameters(CodeParameters, call.fields).code

    def write(transaction: Transaction) -> GraphApiError | None:
        if transaction.find(PREVERIFIED_NUMBERS, number.phone_number) is None:  # claimed in the meantime
            return no_such_object("POST", number.preverified_id)
        error = use_code(transaction, number.phone_number, text)
        if error is None:
            verified = replace(number, verified_ms=state.clock.now_ms())
            transaction.save(PREVERIFIED_NUMBERS, verified, number.phone_number)
        return error

    if (error := await state.transact(write)) is not None:  # the wrong code counts
        raise error
    return GRAPH_SUCCESS
