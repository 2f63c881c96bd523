"""The table of JSON Schemas of successful responses. The OpenAPI document uses it; tests check responses against it."""

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
ANY: Final[Schema] = {}


def just(value: Any) -> Schema:
    """Return the schema of exactly this value."""
    return {"const": value}


def one_of(*values: str) -> Schema:
    """Return the schema of one of these texts."""
    return {"enum": list(values)}


def listed(items: Schema) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def record(*, optional: tuple[str, ...] = (), open: bool = False, **members: Schema) -> Schema:
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


def success(*, optional: tuple[str, ...] = (), **members: Schema) -> Schema:
    """Return the schema of the usual response: `status` is `success`, beside these members."""
    return record(optional=optional, open=False, status=just("success"), **members)


_SUBSCRIPTION: Final = record(
    active=BOOLEAN, appId=TEXT, createdOn=INTEGER, id=TEXT, meta=TEXT, mode=INTEGER, modes=listed(TEXT),
    modifiedOn=INTEGER, showOnUI=BOOLEAN, tag=TEXT, url=TEXT, version={"enum": [2, 3]},
)  # fmt: skip

_TEMPLATE: Final = record(
    optional=("buttonSupported", "parameterFormat", "oldCategory", "new_category", "correct_category",
              "externalId", "reason"),
    allowTemplateCategoryChange=BOOLEAN, appId=TEXT, buttonSupported=TEXT,
    category=one_of("AUTHENTICATION", "MARKETING", "UTILITY"), containerMeta=TEXT, createdOn=INTEGER, data=TEXT,
    elementName=TEXT, id=TEXT, languageCode=TEXT, languagePolicy=just("deterministic"), master=BOOLEAN, meta=TEXT,
    modifiedOn=INTEGER, namespace=TEXT, parameterFormat=TEXT, priority=INTEGER,
    quality=one_of("UNKNOWN", "HIGH", "MEDIUM", "LOW"), retry=INTEGER, stage=TEXT, status=TEXT, templateType=TEXT,
    vertical=TEXT, wabaId=TEXT, oldCategory=TEXT, new_category=TEXT, correct_category=TEXT,
    externalId=TEXT, reason=TEXT,
)  # fmt: skip

_CLICKS: Final = listed(record(type=TEXT, button_content=TEXT, count=INTEGER))
_POINT: Final = record(
    optional=("sent", "delivered", "read", "clicked"),
    template_id=TEXT, start=INTEGER, end=INTEGER, sent=INTEGER, delivered=INTEGER, read=INTEGER, clicked=_CLICKS,
)  # fmt: skip

_METRIC: Final = record(
    optional=("order_by_relative_metric", "number_values", "string_values"),
    metric=one_of("BLOCK_RATE", "MESSAGE_SENDS", "TOP_BLOCK_REASON"),
    type=one_of("RELATIVE", "NUMBER_VALUES", "STRING_VALUES"), order_by_relative_metric=listed(TEXT),
    number_values=listed(record(key=TEXT, value=INTEGER)), string_values=listed(record(key=TEXT, value=TEXT)),
)  # fmt: skip

_PASSTHROUGH: Final = record(
    messages=listed(record(id=TEXT)), messaging_product=just("whatsapp"),
    contacts=listed(record(optional=("wa_id", "user_id"), input=TEXT, wa_id=TEXT, user_id=TEXT)),
)  # fmt: skip
_MESSAGE: Final = record(
    optional=("source", "whatsappMessageId", "code", "reason"), id=TEXT, appId=TEXT, source=TEXT, destination=TEXT,
    type=one_of("session", "template", "message"),
    status=one_of("submitted", "enqueued", "sent", "delivered", "read", "deleted", "failed", "received"),
    createdOn=INTEGER, modifiedOn=INTEGER, whatsappMessageId=TEXT, code=INTEGER, reason=TEXT,
)  # fmt: skip

_ACCOUNT: Final = record(
    token=TEXT, id=INTEGER, name=TEXT, terms_read=BOOLEAN, admin=BOOLEAN, email=TEXT, activationRead=BOOLEAN,
    billingType=TEXT, contactName=TEXT, phoneNumber=TEXT, enableCustomer=BOOLEAN, enableWallet=BOOLEAN,
    enableInrWallet=BOOLEAN, enableLoaderWallet=BOOLEAN, enableAppOnboarding=BOOLEAN, isTpp=BOOLEAN,
    onboardEnabled=BOOLEAN,
)  # fmt: skip
_KEY: Final[Schema] = {
    "id": TEXT, "name": TEXT, "active": BOOLEAN, "createdOn": INTEGER, "expiresOn": INTEGER,
}  # fmt: skip
_LINKED: Final[Schema] = {
    "id": TEXT, "name": TEXT, "phone": TEXT, "partnerId": INTEGER, "live": BOOLEAN, "stopped": BOOLEAN,
    "healthy": BOOLEAN, "walletId": TEXT, "createdOn": INTEGER, "modifiedOn": INTEGER,
}  # fmt: skip
_LISTED: Final = record(
    id=TEXT, name=TEXT, type=TEXT, live=BOOLEAN, phone=TEXT, stopped=BOOLEAN, storageRegion=TEXT, uiFormStage=just(None),
    pipelineStage=just(None), creationStage=just(None), whatsappVerificationStatus=just(None), version=INTEGER,
    products=listed(TEXT), createdOn=INTEGER, modifiedOn=INTEGER,
)  # fmt: skip
_DETAILS: Final[Schema] = {
    "id": TEXT, "name": TEXT, "phone": TEXT, "type": TEXT, "live": BOOLEAN, "stopped": BOOLEAN, "billingType": TEXT,
    "callbackUrl": TEXT, "disableOptinPrefUrl": BOOLEAN, "federated": BOOLEAN, "storageRegion": TEXT,
    "templateMessaging": BOOLEAN, "version": INTEGER, "createdOn": INTEGER, "modifiedOn": INTEGER,
}  # fmt: skip
_USAGE: Final = record(
    appId=TEXT, appName=TEXT, date=TEXT, incomingMsg=INTEGER, outgoingMsg=INTEGER, outgoingMediaMsg=INTEGER,
    templateMsg=INTEGER, templateMediaMsg=INTEGER, totalMsg=INTEGER, marketing=INTEGER, utility=INTEGER,
    authentication=INTEGER, currency=TEXT, discount=INTEGER, gsFees=INTEGER, waFees=INTEGER, totalFees=INTEGER,
    cumulativeBill=INTEGER,
)  # fmt: skip
_WABA: Final = record(
    accountStatus=TEXT, dockerStatus=TEXT, messagingLimit=TEXT, mmLiteStatus=TEXT, ownershipType=TEXT, phone=TEXT,
    phoneQuality=TEXT, throughput=TEXT, verifiedName=TEXT, wabaId=TEXT, canSendMessage=TEXT, errors=listed(ANY),
    additionalInfo=listed(ANY),
)  # fmt: skip

# fmt: off
SHAPES: Final[dict[str, Schema]] = {  # Source: spec, "Resources and their fields"; facts 1.4, 3, 4.3, 8, 9
    "submitted": record(status=just("submitted"), messageId=TEXT),
    "success":   success(),

    # Templates. Source: spec, "Template record"; facts 3.2
    "template":  success(template=_TEMPLATE),
    "templates": success(templates=listed(_TEMPLATE)),
    "findings":  success(findings=listed(record(field=TEXT, rule=TEXT, says=TEXT, source=TEXT, remedy=TEXT, refused_by=one_of("api", "review")))),
    "library":   success(templates=listed(record(open=True))),
    "from_library": success(templates=_TEMPLATE),
    "analytics": success(template_analytics=listed(_POINT)),
    "comparison": success(data=listed(_METRIC)),

    # Subscriptions. Source: facts 4.3
    "subscription":  success(subscription=_SUBSCRIPTION),
    "subscriptions": success(subscriptions=listed(_SUBSCRIPTION)),

    # Sending. Source: spec, "Flow passthrough message"; facts 9.1, 9.3
    "passthrough":   {"anyOf": [_PASSTHROUGH, record(success=just(True))]},
    "message_state": success(message=_MESSAGE),

    # Media. Source: spec, "Media handles"; facts 8
    "handle_id":    success(handleId=record(message=TEXT)),
    "media_id":     success(mediaId=TEXT),
    "stored_media": success(media=record(fileName=TEXT, id=TEXT, url=TEXT)),
    "file":         {"type": "string", "format": "binary"},

    # Partner and tokens. Source: spec, "Partner account"; facts 1.4, 1.5
    "account":       _ACCOUNT,
    "app_token":     success(token=record(token=TEXT, authoriserId=TEXT, requestorId=TEXT, createdOn=INTEGER, modifiedOn=INTEGER, expiresOn=INTEGER, active=BOOLEAN)),
    "minted_token":  success(token=TEXT, id=TEXT),
    "minted_tokens": success(tokens=listed(record(id=TEXT, name=TEXT, status=one_of("ACTIVE", "EXPIRED", "REVOKED"), createdOn=INTEGER, expiresOn=INTEGER))),
    "app_key":       success(apiKey=record(**_KEY, apiKey=TEXT)),
    "app_keys":      success(apiKeys=listed(record(**_KEY))),

    # Apps. Source: facts 2
    "partner_apps":   success(partnerAppsList=listed(record(**_LINKED, customerId=TEXT, cap=INTEGER))),
    "linked_app":     success(partnerApps=record(**_LINKED)),
    "listed_apps":    success(partnerAppsList=listed(_LISTED)),
    "app_details":    success(app=just("true"), appDetails=record(**_DETAILS, liveTs=INTEGER, embedAllowed=BOOLEAN, languageCode=TEXT)),
    "created_app":    success(appId=TEXT),
    "changed_app":    success(app=record(**_DETAILS, customerId=TEXT, customerType=TEXT)),
    "deleted_app":    success(message=TEXT),
    "callback_modes": success(callback=record(custom=BOOLEAN, modes=listed(TEXT))),
    "callback":       success(callback=record(url=TEXT, custom=BOOLEAN, modes=listed(TEXT))),
    "user_status":    success(optional=("message",), message=TEXT, userStatus=record(active=BOOLEAN, appId=TEXT, blocked=BOOLEAN, countryCode=TEXT, dialCode=TEXT, phone=TEXT, status=one_of("OPT_IN", "OPT_OUT"))),
    "users":          success(users=listed(record(countryCode=TEXT, phoneCode=TEXT, optinStatus=one_of("OPT_IN", "OPT_OUT"), optinSource=TEXT, optinTimeStamp=INTEGER, lastMessageTimeStamp=INTEGER))),
    "contact":        success(contact=record(contactEmail=TEXT, contactName=TEXT, contactNumber=TEXT)),
    "cap":            success(cap=INTEGER),
    "balance":        success(balance=NUMBER),
    "message":        success(message=TEXT),

    # Account and number. Source: facts 13
    "wallet":     success(walletResponse=record(currency=TEXT, currentBalance=NUMBER, overDraftLimit=NUMBER)),
    "usage":      success(partnerAppUsageList=listed(_USAGE)),
    "discount":   success(dailyAppDiscountList=listed(ANY)),
    "health":     success(healthy=one_of("true", "false")),
    "ratings":    success(message=TEXT),
    "waba_info":  success(wabaInfo=_WABA),
    "profile":    success(profile=record(address=TEXT, desc=TEXT, profileEmail=TEXT, vertical=TEXT, website1=TEXT, website2=TEXT)),
    "about":      success(about=record(message=TEXT)),
    "photo":      success(message=TEXT),
    "blocked":    record(open=True, status=just("success")),
    "block_list": record(open=True, status=just("success"), data=listed(ANY)),
    "components": record(conversational_automation=record(open=True), id=TEXT),
    "done":       success(success=BOOLEAN),

    # Flows. Source: facts 9.4
    "created_flow": success(id=TEXT, validation_errors=listed(ANY)),
    "flows":        listed(record(open=True)),
    "flow":         record(open=True),
    "flow_assets":  listed(record(open=True)),
    "flow_file":    success(success=BOOLEAN, validation_errors=listed(ANY)),
    "flow_preview": success(id=TEXT, preview=record(open=True)),
}
# fmt: on
