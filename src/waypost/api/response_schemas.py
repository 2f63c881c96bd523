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


_EDIT: Final = object_of(
    optional=("reason",),
    status=enum_of("PENDING", "REJECTED", "FAILED"), reason=TEXT, modifiedOn=INTEGER,
    category=enum_of("AUTHENTICATION", "MARKETING", "UTILITY"), templateType=TEXT, data=TEXT, meta=TEXT,
    containerMeta=TEXT,
)  # fmt: skip

_TEMPLATE: Final = object_of(
    optional=("buttonSupported", "parameterFormat", "oldCategory", "new_category", "correct_category",
              "externalId", "reason", "edit"),
    allowTemplateCategoryChange=BOOLEAN, appId=TEXT, buttonSupported=TEXT,
    category=enum_of("AUTHENTICATION", "MARKETING", "UTILITY"), containerMeta=TEXT, createdOn=INTEGER, data=TEXT,
    elementName=TEXT, id=TEXT, languageCode=TEXT, languagePolicy=constant("deterministic"), master=BOOLEAN, meta=TEXT,
    modifiedOn=INTEGER, namespace=TEXT, parameterFormat=TEXT, priority=INTEGER,
    quality=enum_of("UNKNOWN", "HIGH", "MEDIUM", "LOW"), retry=INTEGER, stage=TEXT, status=TEXT, templateType=TEXT,
    vertical=TEXT, wabaId=TEXT, oldCategory=TEXT, new_category=TEXT, correct_category=TEXT,
    externalId=TEXT, reason=TEXT, edit=_EDIT,
)  # fmt: skip

_CLICKS: Final = array_of(object_of(type=TEXT, button_content=TEXT, count=INTEGER))
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
_POINT: Final = object_of(
    optional=("sent", "delivered", "read", "clicked", "cost"),
    template_id=TEXT, start=INTEGER, end=INTEGER, sent=INTEGER, delivered=INTEGER, read=INTEGER, clicked=_CLICKS,
    cost=array_of(object_of(type=TEXT, value=NUMBER)),
)  # fmt: skip

_METRIC: Final = object_of(
    optional=("order_by_relative_metric", "number_values", "string_values"),
    metric=enum_of("BLOCK_RATE", "MESSAGE_SENDS", "TOP_BLOCK_REASON"),
    type=enum_of("RELATIVE", "NUMBER_VALUES", "STRING_VALUES"), order_by_relative_metric=array_of(TEXT),
    number_values=array_of(object_of(key=TEXT, value=INTEGER)), string_values=array_of(object_of(key=TEXT, value=TEXT)),
)  # fmt: skip

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
_USAGE: Final = object_of(
    appId=TEXT, appName=TEXT, date=TEXT, incomingMsg=INTEGER, outgoingMsg=INTEGER, outgoingMediaMsg=INTEGER,
    templateMsg=INTEGER, templateMediaMsg=INTEGER, totalMsg=INTEGER, marketing=INTEGER, utility=INTEGER,
    authentication=INTEGER, currency=TEXT, discount=INTEGER, gsFees=INTEGER, waFees=INTEGER, totalFees=INTEGER,
    cumulativeBill=INTEGER, service=INTEGER, mmLiteMarketing=INTEGER, freeUtility=INTEGER, internationalAuthentication=INTEGER,
    fep=INTEGER, ftc=INTEGER, gsCap=INTEGER,
)  # fmt: skip
_WABA: Final = object_of(
    accountStatus=TEXT, dockerStatus=enum_of("CONNECTED", "DISCONNECTED", "FLAGGED", "PENDING", "RESTRICTED", "UNKNOWN"), phoneNumberId=TEXT, messagingLimit=TEXT, mmLiteStatus=TEXT, ownershipType=TEXT, phone=TEXT,
    phoneQuality=enum_of("GREEN", "YELLOW", "RED", "UNKNOWN"), throughput=TEXT, verifiedName=TEXT, wabaId=TEXT, canSendMessage=TEXT, errors=array_of(object_of(error_code=TEXT, error_description=TEXT, possible_solution=TEXT)),
    additionalInfo=array_of(ANY),
)  # fmt: skip

# fmt: off
RESPONSE_SCHEMAS: Final[dict[str, Schema]] = {  # Source: spec, "Resources and their fields"; facts 1.4, 3, 4.3, 8, 9
    "submitted":      object_of(status=constant("submitted"), messageId=TEXT),
    "success":        success_object(),

    # Templates. Source: spec, "Template record"; facts 3.2
    "template":       success_object(template=_TEMPLATE),
    "templates":      success_object(templates=array_of(_TEMPLATE)),
    "findings":       success_object(findings=array_of(object_of(field=TEXT, rule=TEXT, says=TEXT, source=TEXT, remedy=TEXT, refused_by=enum_of("api", "review")))),
    "library":        success_object(templates=array_of(object_of(open=True))),
    "from_library":   success_object(templates=_TEMPLATE),
    "analytics":      success_object(optional=("product_type",), product_type=enum_of("CLOUD_API", "MARKETING_MESSAGES_LITE_API"), template_analytics=array_of(_POINT)),
    "insights":       success_object(template_insights=array_of(object_of(open=True))),
    "link":           success_object(link=TEXT),
    "comparison":     success_object(data=array_of(_METRIC)),

    # Sending. Source: spec, "Flow passthrough message"; facts 9.1, 9.3
    "passthrough":    {"anyOf": [_PASSTHROUGH, object_of(success=constant(True))]},
    "message_state":  success_object(message=_MESSAGE),

    # Media. Source: spec, "Media handles"; facts 8
    "handle_id":      success_object(handleId=object_of(message=TEXT)),
    "media_id":       success_object(mediaId=TEXT),
    "stored_media":   success_object(mediaId=TEXT, media=object_of(fileName=TEXT, id=TEXT, url=TEXT)),
    "file":           {"type": "string", "format": "binary"},

    # Partner and tokens. Source: spec, "Partner account"; facts 1.4, 1.5

    # Apps. Source: facts 2
    "app_linked_by_linking_token": success_object(linked=BOOLEAN, appId=TEXT, appName=TEXT, customerId=TEXT, partnerId=INTEGER, tokenStatus=TEXT),
    "app_linked_by_token": success_object(partnerApps=object_of(**_LINKED_APP, customerId=TEXT, cap=INTEGER, partnerCreated=BOOLEAN, cxpEnabled=BOOLEAN, partnerUsage=BOOLEAN, email=TEXT, preferredTimezone=TEXT, solutionId=TEXT, storageRegion=TEXT, currency=TEXT, customerOrgId=TEXT, source=constant("SS"), nameSpace=TEXT)),
    "message":        success_object(message=TEXT),

    # Account and number. Source: facts 13
    "prefilled":      success_object(appId=TEXT, businessName=TEXT, email=TEXT, website=TEXT, businessPhoneCode=TEXT, businessPhoneNumber=TEXT, streetAddress1=TEXT, streetAddress2=TEXT, city=TEXT, state=TEXT, zipPostal=TEXT, country=TEXT, timezone=TEXT, phoneDisplayName=TEXT, phoneCategory=TEXT, phoneDescription=TEXT),
    "sync":           success_object(data=object_of(open=True)),
    "done":           success_object(success=BOOLEAN),

    # Flows. Source: facts 9.4

}
# fmt: on
