"""The demonstration: names, ids and secrets that are the same on every machine. Not for real use."""

from typing import Final

from waypost.config import DEMO_ADMIN_TOKEN
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.partner import Partner
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.operators.cloud.numbers import cloud_account

INSTANCE_KEY: Final = "waypost demo instance key, known to everybody, rejected by serve"
ADMIN_TOKEN: Final = DEMO_ADMIN_TOKEN
EMAIL: Final = "demo@waypost.test"
PASSWORD: Final = "Demo-password-1"
PASSWORD_HASH: Final = "$argon2id$v=19$m=8,t=1,p=1$yyh04eHCN52bOq9gmEWx/g$1hWpr4cWi4h7c1Pl3ztLCCZCIv59Gje8MO2wRWiniNs"
"""Of the smallest cost: everybody knows the password, and computing another took a sixth of a start."""
CLIENT_SECRET: Final = "d3a0" * 16
API_KEY: Final = "a91c" * 16
APP_ID: Final = "01990000-0000-7000-8000-0000000000a1"
APP_NAME: Final = "WaypostDemo"
SOURCE: Final = "15550001000"
WABA_ID: Final = "1000000000000001"
PHONE_NUMBER_ID: Final = "1000000000000002"
GRAPH_APP_ID: Final = "1000000000000003"
OPERATOR_TEMPLATE_ID: Final = "1000000000000004"
GRAPH_TOKEN: Final = "demo-graph-token"
GRAPH_APP_SECRET: Final = "demo-graph-app-secret"
VERIFY_TOKEN: Final = "demo-verify-token"
OPERATOR_ACCOUNT: Final = "demo"
NAMESPACE: Final = "de300000_0000_7000_8000_0000000000a1"
TEMPLATE_ID: Final = "01990000-0000-7000-8000-0000000000b1"
GRAPH_VERSION: Final = "v25.0"
DESTINATION: Final = "15550002001"

# fmt: off
PHONES: Final = (  # number, name
    (DESTINATION,   "Ann"),
    ("15550002002", "Ben"),
    ("15550002003", "Chi"),
)
# fmt: on

PARTNER: Final = Partner(id=1, name="Demo Partner", email=EMAIL, contact_name="Dana Demo", phone_number="15550000001")
ACCOUNT: Final = BusinessAccount(WABA_ID, PARTNER.id, NAMESPACE, OPERATOR_ACCOUNT)

COMPONENTS: Final = (
    {
        "type": "BODY",
        "text": "Hi {{1}}, your order {{2}} is ready. Shall we bring it today?",
        "example": {"body_text": [["Ann", "4711"]]},
    },
    {
        "type": "BUTTONS",
        "buttons": [{"type": "QUICK_REPLY", "text": "Yes please"}, {"type": "QUICK_REPLY", "text": "Another day"}],
    },
)


def operator_account(base_url: str) -> OperatorAccount:
    """Return the demonstration's account at the simulator."""
    return cloud_account(
        OPERATOR_ACCOUNT,
        base_url,
        version=GRAPH_VERSION,
        token=GRAPH_TOKEN,
        app_id=GRAPH_APP_ID,
        app_secret=GRAPH_APP_SECRET,
        verify_token=VERIFY_TOKEN,
    )


def app(at_ms: int) -> App:
    """Return the demonstration's app, with the first token."""
    return App(
        id=APP_ID,
        partner_id=PARTNER.id,
        name=APP_NAME,
        phone_number=SOURCE,
        phone_number_id=PHONE_NUMBER_ID,
        business_account_id=WABA_ID,
        created_on_ms=at_ms,
        modified_on_ms=at_ms,
    )


def template(at_ms: int) -> Template:
    """Return an approved template with two quick replies."""
    return Template(
        id=TEMPLATE_ID,
        partner_id=PARTNER.id,
        app_id=APP_ID,
        business_account_id=WABA_ID,
        namespace=NAMESPACE,
        draft=TemplateDraft(
            element_name="order_ready",
            language_code="en_US",
            category=Category.UTILITY,
            template_type="TEXT",
            vertical="Order updates",
            content="Hi {{1}}, your order {{2}} is ready. Shall we bring it today?",
            example="Hi [Ann], your order [4711] is ready. Shall we bring it today?",
            buttons=(
                TemplateButton(ButtonKind.QUICK_REPLY, "Yes please"),
                TemplateButton(ButtonKind.QUICK_REPLY, "Another day"),
            ),
            enable_sample=True,
        ),
        status=TemplateStatus.APPROVED,
        created_on_ms=at_ms,
        modified_on_ms=at_ms,
        category=Category.UTILITY,
        operator_template_id=OPERATOR_TEMPLATE_ID,
    )
