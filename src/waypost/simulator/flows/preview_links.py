"""Links to the preview of a Flow, as the Graph API returns them."""

from typing import Final

from waypost.simulator.apis.links import signed_link
from waypost.simulator.flows.model import Flow

PREVIEW_ROOT: Final = "/wa/manage/flows"
"""The beginning of the paths of previews, as at the operator."""
PREVIEW_LIFETIME_MS: Final = 30 * 24 * 3600 * 1000
"""Source: the operator's page "Flows API", `preview`."""


def preview_link(origin: str, flow: Flow, key: str, until_ms: int) -> str:
    """Return the link of a preview.

    Args:
        key: a credential of the account.
    """
    return signed_link(origin, f"{PREVIEW_ROOT}/{flow.flow_id}/preview/", key, flow.flow_id, until_ms)
