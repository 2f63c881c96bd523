"""When all has healed: a key that one process has revoked is rejected by all of them, a moment later.

Source: `docs/how-to/several-machines.md`: "within milliseconds". Before, each process has used the key, so it knows it.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from simulation.accounts import PartnerAccount
from simulation.client import request
from waypost.assembly.dev import demo

WITHIN_S: Final = 0.5
ACCEPTED: Final = 200
REJECTED: Final = 401
NEW_KEY: Final = {"name": "last"}


async def find_accepted_after_revocation(partners: Sequence[PartnerAccount], ports: Sequence[int]) -> list[str]:
    """Replace the API key of each partner by the first process; return what another process says that is wrong."""
    return [problem for partner in partners for problem in await _replace_key(partner, ports)]


async def _replace_key(partner: PartnerAccount, ports: Sequence[int]) -> list[str]:
    headers, old = {"Authorization": f"Bearer {demo.ADMIN_TOKEN}"}, partner.api_keys[-1]
    before = [await _use(port, partner, old) for port in ports]
    made = await request(ports[0], "POST", f"/admin/partners/{partner.number}/api-keys", headers, json_body=NEW_KEY)
    if made is None or made.body is None or made.status != ACCEPTED:
        return [f"the API key of {partner} could not be replaced: {made}"]
    new = made.body["api_key"]
    partner.api_keys.append(new)
    await request(ports[0], "POST", "/admin/api-keys/revoke", headers, json_body={"api_key": old})
    await asyncio.sleep(WITHIN_S)
    found = [
        (one, await _use(port, partner, old), await _use(port, partner, new))
        for one, port in zip(before, ports, strict=True)
    ]
    return [
        f"process {nth}: the API key of {partner} got {statuses[0]}; once it was revoked {statuses[1]}, the next one {statuses[2]}"
        for nth, statuses in enumerate(found)
        if statuses != (ACCEPTED, REJECTED, ACCEPTED)
    ]


async def _use(port: int, partner: PartnerAccount, api_key: str) -> int | None:
    """Return the status of a request with a key: for a template of the partner."""
    path = f"/wa/app/{partner.apps[0].id}/template/{partner.template_id}"
    response = await request(port, "GET", path, {"apikey": api_key})
    return None if response is None else response.status
