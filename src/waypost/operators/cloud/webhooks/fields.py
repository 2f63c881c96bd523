"""Webhook fields: those that we need, with what is missing without each, and those that some features use."""

from typing import Final

from waypost.domain.direct_calls.subscriptions import MissingWebhookField

_LIMITS: Final = "no callbacks about limits and reviews"
_SYNC_ONLY: Final = "quality, category and texts of templates are updated by a sync only"
NEEDED_FIELDS: Final = (  # Source: operator's facts 7.2
    MissingWebhookField("messages", "no statuses, no inbound messages", is_serious=True),
    MissingWebhookField("message_template_status_update", "templates stay PENDING until a sync", is_serious=False),
    MissingWebhookField("message_template_quality_update", _SYNC_ONLY, is_serious=False),
    MissingWebhookField("template_category_update", _SYNC_ONLY, is_serious=False),
    MissingWebhookField("message_template_components_update", _SYNC_ONLY, is_serious=False),
    MissingWebhookField("phone_number_quality_update", _LIMITS, is_serious=False),
    MissingWebhookField("account_update", _LIMITS, is_serious=False),
    MissingWebhookField("account_alerts", _LIMITS, is_serious=False),
    MissingWebhookField("business_capability_update", _LIMITS, is_serious=False),
    MissingWebhookField(
        "user_preferences", "no callbacks about recipients who stopped marketing messages", is_serious=False
    ),
)
FEATURE_FIELDS: Final = (
    "account_review_update",
    "account_settings_update",
    "business_status_update",
    "calls",
    "flows",
    "group_lifecycle_update",
    "group_participants_update",
    "group_settings_update",
    "group_status_update",
    "history",
    "partner_solutions",
    "payment_configuration_update",
    "phone_number_name_update",
    "security",
    "smb_app_state_sync",
    "smb_message_echoes",
    "template_correct_category_detection",
    "tracking_events",
    "user_id_update",
)  # fmt: skip
"""Fields that are called back as received: calls, groups, payments, the app on a phone."""
