"""The settings of a number's calls."""

from typing import Annotated, Any, Final

from msgspec import Struct

from waypost.api.fields import Field
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.route import Confirmation
from waypost.domain.errors import ErrorCode
from waypost.wire.calling import CallSettings, SipAccount, VoiceParameters, read_call_settings

_STATUSES: Final = {True: "ENABLED", False: "DISABLED"}
_HOURS: Final = (
    '{"call_hours":{"status":"ENABLED","timezone_id":"Asia/Kolkata","weekly_operating_hours":'
    '[{"day_of_week":"MONDAY","open_time":"0800","close_time":"1800"}]}}'
)

operation = Operations("ledger 1.7, `voice`")


class CallSettingsForm(Struct, rename="camel"):
    """Settings for calls; which are read depends on the mode."""

    enable: Annotated[bool, Field("Whether people can call the number.", "true")]
    icon_visibility: Annotated[
        str, Field("Whether chats show the button that starts a call: DEFAULT or DISABLE_ALL.", "DEFAULT")
    ] = ""
    mode: Annotated[
        str, Field("GS_SIP: calls go to the SIP server in `metaData`. Without it they come as events.", "GS_SIP")
    ] = ""
    meta_data: Annotated[
        list[SipAccount] | None,
        Field(
            "JSON text: the SIP servers; required for the mode GS_SIP. Only `host` and `port` reach the operator.",
            '[{"host":"sip.shop.example","port":"5071"}]',
        ),
    ] = None
    additional_params: Annotated[
        VoiceParameters | None, Field("JSON text: the hours in which people can call.", _HOURS)
    ] = None


@operation("POST", f"{APP}/voice", Confirmation, body=CallSettingsForm, errors=(ErrorCode.FIELD_BROKEN,))
async def set_calling(call: AppCall) -> Confirmation:
    """Enable or disable calls to the number, and set their hours and where they go."""
    settings = read_call_settings(call.request.form_or_json())
    await call.graph("POST", f"{call.number}/settings", {"calling": _calling(settings)})
    enabled = "true" if settings.is_enabled else "false"
    return Confirmation(f"Whatsapp voice status updated to {enabled}")


def _calling(settings: CallSettings) -> dict[str, Any]:
    servers = settings.sip_servers
    calling: dict[str, Any] = {"status": _STATUSES[settings.is_enabled]}
    if settings.icon_visibility is not None:
        calling["call_icon_visibility"] = settings.icon_visibility
    if settings.hours is not None:
        calling["call_hours"] = settings.hours
    if servers is not None:
        listed = [{"hostname": server.hostname, "port": server.port} for server in servers]
        calling["sip"] = {"status": _STATUSES[bool(servers)], **({"servers": listed} if listed else {})}
    return calling
