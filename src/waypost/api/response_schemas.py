"""The table of JSON Schemas of successful responses. The OpenAPI document uses it; tests check responses against it."""

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
ANY: Final[Schema] = {}


def constant(value: Any) -> Schema:
    """Return the schema of exactly this value."""
    return {"const": value}


def enum_of(*values: str) -> Schema:
    """Return the schema of one of these texts."""
    return {"enum": list(values)}


def array_of(items: Schema) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def object_of(*, optional: tuple[str, ...] = (), open: bool = False, **members: Schema) -> Schema:
    """Return the schema of an object with these members; all but the optional ones are required.

    Args:
        optional: names of members that may be absent.
        open: True if other members may be there too.
        members: schemas by name; a name that is not a Python name is passed as `**{"…": …}`.
    """
    return {
        "type": "object",
        "properties": members,
        "required": [name for name in members if name not in optional],
        "additionalProperties": open,
    }


def success_object(*, optional: tuple[str, ...] = (), **members: Schema) -> Schema:
    """Return the schema of the usual response: `status` is `success`, in addition to these members."""
    return object_of(optional=optional, open=False, status=constant("success"), **members)


_TOKENS: Final = array_of(
    object_of(
        id=TEXT,
        name=TEXT,
        createdByEmail=TEXT,
        createdOn=INTEGER,
        expiredOn=INTEGER,
        revokedOn={"type": ["integer", "null"]},
        status=enum_of("ACTIVE", "EXPIRED", "REVOKED"),
    )
)
_PASSTHROUGH: Final = object_of(
    messages=array_of(object_of(id=TEXT)), messaging_product=constant("whatsapp"),
    contacts=array_of(object_of(optional=("wa_id", "user_id"), input=TEXT, wa_id=TEXT, user_id=TEXT)),
)  # fmt: skip
_MESSAGE: Final = object_of(
    optional=("source", "whatsappMessageId", "code", "reason"), id=TEXT, appId=TEXT, source=TEXT, destination=TEXT,
    type=enum_of("session", "template", "message"),
    status=enum_of("submitted", "enqueued", "sent", "delivered", "read", "deleted", "failed", "received"),
    createdOn=INTEGER, modifiedOn=INTEGER, whatsappMessageId=TEXT, code=INTEGER, reason=TEXT,
)  # fmt: skip

_ACCOUNT: Final = object_of(
    token=TEXT, id=INTEGER, name=TEXT, terms_read=BOOLEAN, admin=BOOLEAN, email=TEXT, activationRead=BOOLEAN,
    billingType=TEXT, contactName=TEXT, phoneNumber=TEXT, enableCustomer=BOOLEAN, enableWallet=BOOLEAN,
    enableInrWallet=BOOLEAN, enableLoaderWallet=BOOLEAN, enableAppOnboarding=BOOLEAN, isTpp=BOOLEAN,
    onboardEnabled=BOOLEAN,
)  # fmt: skip
_KEY: Final[Schema] = {
    "token": TEXT, "createdOn": INTEGER, "modifiedOn": INTEGER, "id": TEXT, "name": TEXT, "active": BOOLEAN,
    "expiresOn": INTEGER,
}  # fmt: skip
_LINKED_APP: Final[Schema] = {
    "id": TEXT, "name": TEXT, "phone": TEXT, "partnerId": INTEGER, "live": BOOLEAN, "stopped": BOOLEAN,
    "healthy": BOOLEAN, "walletId": TEXT, "createdOn": INTEGER, "modifiedOn": INTEGER,
}  # fmt: skip
_LISTED_APP: Final = object_of(
    id=TEXT, name=TEXT, type=TEXT, live=BOOLEAN, phone=TEXT, stopped=BOOLEAN, storageRegion=TEXT, uiFormStage=TEXT,
    pipelineStage=TEXT, creationStage=TEXT, whatsappVerificationStatus=TEXT, version=INTEGER,
    products=array_of(TEXT), createdOn=INTEGER, modifiedOn=INTEGER,
)  # fmt: skip
_APP_DETAILS: Final[Schema] = {
    "id": TEXT, "name": TEXT, "phone": TEXT, "type": TEXT, "live": BOOLEAN, "stopped": BOOLEAN, "billingType": TEXT,
    "callbackUrl": TEXT, "disableOptinPrefUrl": BOOLEAN, "federated": BOOLEAN, "storageRegion": TEXT,
    "templateMessaging": BOOLEAN, "version": INTEGER, "createdOn": INTEGER, "modifiedOn": INTEGER,
}  # fmt: skip
_CHANGED_APP: Final = object_of(
    **_APP_DETAILS, liveTs=INTEGER, embedAllowed=BOOLEAN, languageCode=TEXT, customerId=TEXT, customerType=TEXT,
)  # fmt: skip
# fmt: off
RESPONSE_SCHEMAS: Final[dict[str, Schema]] = {  # Source: spec, "Resources and their fields"; facts 1.4, 3, 4.3, 8, 9


    # Sending. Source: spec, "Flow passthrough message"; facts 9.1, 9.3

    # Media. Source: spec, "Media handles"; facts 8

    # Partner and tokens. Source: spec, "Partner account"; facts 1.4, 1.5

    # Apps. Source: facts 2

    # Account and number. Source: facts 13

    # Flows. Source: facts 9.4

}
# fmt: on
