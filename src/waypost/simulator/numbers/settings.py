"""Graph API calls for stored data of a number: commerce settings, public key, settings such as `calling`."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from waypost.base.json_values import object_of, object_or_none
from waypost.simulator.apis.errors import bad_parameter
from waypost.simulator.apis.parameters import check_boolean, given_parameters, must, read_parameters
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.flows.encryption import read_public_key
from waypost.simulator.flows.endpoint_keys import signature_status
from waypost.simulator.numbers.calling_settings import merge_calling
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import requested_fields
from waypost.simulator.state.records import COMMERCE, ENCRYPTION, SETTINGS
from waypost.simulator.state.simulator_state import SimulatorState, Transaction

operation = GraphOperations()

_NOT_SETTINGS: Final = frozenset({"access_token", "messaging_product", "fields"})


class CommerceParameters(Struct, frozen=True):
    """The visibility of catalogue and cart."""

    is_catalog_visible: Annotated[bool, check_boolean] = False
    is_cart_enabled: Annotated[bool, check_boolean] = True


class KeyParameters(Struct, frozen=True):
    """The public key for flows."""

    business_public_key: Annotated[
        str, must("be a public RSA key of 2048 bits in PEM format", lambda value: read_public_key(value) is not None)
    ]


def show_commerce(state: SimulatorState, _call: Call, number: Number) -> dict[str, Any]:
    """Return the visibility of catalogue and cart. Source: the operator's page "Commerce settings"."""
    shop = {**asdict(CommerceParameters()), **state.record(number.phone_number_id, COMMERCE)}
    return {"data": [{**shop, "id": number.phone_number_id}]}


@operation("commerce.change", "POST", Number, "whatsapp_commerce_settings")
def change_commerce_settings(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Show catalogue and cart, or hide them. Source: the operator's page "Commerce settings"."""
    changes = given_parameters(CommerceParameters, call.fields)
    if not changes:
        raise bad_parameter(f"One of the parameters {', '.join(CommerceParameters.__struct_fields__)} is required.")
    transaction.change_record(number.phone_number_id, COMMERCE, **changes)
    return GRAPH_SUCCESS


def show_key(state: SimulatorState, _call: Call, number: Number) -> dict[str, Any]:
    """Return the business's public key for flows. Source: the operator's page "Business encryption"."""
    key = state.record(number.phone_number_id, ENCRYPTION).get("business_public_key")
    if key is None:
        return {"data": []}
    signed = {"business_public_key": key, "business_public_key_signature_status": signature_status(state, number)}
    return {**signed, "data": [signed]}


@operation("encryption.change", "POST", Number, "whatsapp_business_encryption")
def change_key(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Set the public key, and sign it for the number's registration. Source: the operator's page "Business encryption"."""
    key = read_parameters(KeyParameters, call.fields).business_public_key
    transaction.save_record(number.phone_number_id, ENCRYPTION, {"business_public_key": key})
    return GRAPH_SUCCESS


def show_settings(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Return the stored settings; of them, `calling` decides whether phones can call the number."""
    settings = state.record(number.phone_number_id, SETTINGS)
    names = requested_fields(call)
    return {name: settings[name] for name in names or settings if name in settings}


@operation("numbers.settings", "POST", Number, "settings")
def change_settings(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Store settings; absent ones stay unchanged."""
    changes = {name: value for name, value in call.fields.items() if name not in _NOT_SETTINGS}
    if not changes or any(object_or_none(value) is None for value in changes.values()):
        raise bad_parameter("Each of a number's settings must be an object, and one is required.")
    if "calling" in changes:
        today = datetime.fromtimestamp(transaction.state.clock.now_ms() / 1000, UTC).date()
        known = object_of(transaction.record(number.phone_number_id, SETTINGS).get("calling"))
        changes["calling"] = merge_calling(known, changes["calling"], today=today)
    transaction.change_record(number.phone_number_id, SETTINGS, **changes)
    return GRAPH_SUCCESS
