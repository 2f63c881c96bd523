"""A person whose data an administrator erases while messages and callbacks about them are on their way.

She has a number of her own, and the other checks do not know her: an erasure begins her sequence numbers again, and a
webhook that the operator repeats counts as new. Everybody else's promises hold as always: nothing of theirs is lost.

Source: `docs/how-to/personal-data.md`, "Erase what is stored about a number".
"""

import asyncio
import json
import re
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Table

from simulation.accounts import PORTS, AppAccount, PartnerAccount
from simulation.choices import Choices, declare
from simulation.client import Response, call, request
from simulation.observed import PERSON, Observed
from simulation.phones import JPEG
from simulation.story import tell
from waypost.assembly.dev import demo
from waypost.simulator import Simulator
from waypost.store.encoding import CALLBACK_BODIES, REQUESTS
from waypost.store.tables import callbacks, metadata

SECRET: Final = "for her eyes only"
"""A part of what she writes, and of what is written to her."""
TEXT: Final = {"type": "text", "text": SECRET}
TURNS: Final = 5
TURN_EVERY_S: Final = 6
BURSTS: Final = (1, 1, 3, 6)
"""So many messages to her at once: at the slow number they wait for seconds, and an erasure finds them waiting."""
ERASED_AFTER_S: Final = (0, 0.2, 1)
ERASURES_IN_A_ROW: Final = 4
"""They take about as long as what she writes needs to arrive, to be applied, and to be called back."""
TRANSACTION_TAKES_S: Final = 0.005
"""While they are made: without it nothing comes between those of one erasure."""
COMPLETE_WITHIN_S: Final = 30
"""Until the callbacks of the last thing that she wrote are received, when nothing goes wrong any more."""
PART: Final = "a person takes part"
MAX_CALLS: Final = 200
"""Of one erasure."""
_TRACE: Final = re.compile(rf"(?<![0-9]){PERSON}(?![0-9])|{SECRET}".encode())
_FAILED: Final = b"failed"
Read = Callable[[str], Awaitable[list[Any]]]
"""Returns what a query finds in the service's store."""

declare(
    {
        PART: "a person whose data is erased took part",
        "person is erased": "an administrator erased the data of the person",
        "partner writes to the person": "a partner sent a message to the person",
        "person writes": "the person wrote",
        "person sends an image": "the person sent an image",
    }
)


class ErasedPerson:
    """The person, who writes to her, and the administrator who erases her data."""

    def __init__(
        self, partners: Sequence[PartnerAccount], simulator: Simulator, choices: Choices, observed: Observed
    ) -> None:
        self._partners, self._simulator = partners, simulator
        self._choices, self._observed = choices, observed
        self._is_there = choices.happens(PART, 0.9)
        self._acknowledged: list[tuple[str, str]] = []  # our id, and the app

    async def live(self) -> None:
        """Write, be written to, and be erased, in a few turns: what was sent may still be on its way."""
        for _ in range(TURNS if self._is_there else 0):
            await asyncio.sleep(self._choices.between("person pause", 0.1, TURN_EVERY_S))
            partner = self._choices.pick("person's partner", self._partners)
            app = self._choices.pick("person's app", partner.apps)
            if self._choices.happens("person writes", 0.7):
                await self._write(app, TEXT)
            if self._choices.happens("person sends an image", 0.3):
                await self._write(app, {"type": "image", "media": {"content": JPEG, "mime_type": "image/jpeg"}})
            if self._choices.happens("partner writes to the person", 0.9, of=PART):
                count = self._choices.pick("messages", BURSTS, of="partner writes to the person")
                await asyncio.gather(*(self._send(partner, app) for _ in range(count)))
            if self._choices.happens("person is erased", 0.4, of=PART):
                await asyncio.sleep(self._choices.pick("after", ERASED_AFTER_S, of="person is erased"))
                tell(f"the erasure of the person ended with {await self._erase()}")

    async def end(self, read: Read, operator_rows: Iterable[Any]) -> None:
        """Erase the person when no work is left, again while she writes, and check that nothing of her is left.

        Args:
            read: returns what a query finds in the service's store.
            operator_rows: our id, and more, of each message that the operator has accepted.
        """
        if not self._is_there:
            return
        self._check_ends({data.split(" ")[0] for (data,) in operator_rows})
        first, second = await self._erase(), await self._erase()
        if first is None or not first["complete"]:
            self._break(f"an erasure when no work was left ended with {first}")
        if second is None or not second["complete"] or second["erased"]:
            self._break(f"a second erasure ended with {second}")
        inactive = {app_id for (app_id,) in await read("SELECT app_id FROM subscriptions WHERE NOT active")}
        for app in [app for partner in self._partners for app in partner.apps if app.id not in inactive]:
            await asyncio.gather(self._write(app, TEXT), self._erase_in_a_row())
            await self._erase_completely()
            await self._check_traces(read, callbacks)  # what she writes next may lead to it again
        for table in metadata.sorted_tables:
            await self._check_traces(read, table)

    async def _erase_in_a_row(self) -> None:
        """Erase a few times: what she writes is enqueued where one of them has searched already."""
        loop: Any = asyncio.get_running_loop()
        loop.thread_delay_s = TRANSACTION_TAKES_S
        for _ in range(ERASURES_IN_A_ROW):
            await self._erase()
        loop.thread_delay_s = 0.0

    async def _erase_completely(self) -> None:
        """Erase until nothing waits: it is the work about what she wrote last."""
        erased = None
        for _ in range(COMPLETE_WITHIN_S):
            await asyncio.sleep(1)
            erased = await self._erase()
            if erased is not None and erased["complete"]:
                return
        self._break(f"{COMPLETE_WITHIN_S} s after the person wrote last, an erasure ended with {erased}")

    async def _write(self, app: AppAccount, content: Mapping[str, Any]) -> None:
        body = {"to": app.source, **content}
        await call(self._simulator.application, "POST", f"/control/phones/{PERSON}/messages", body)

    async def _send(self, partner: PartnerAccount, app: AppAccount) -> None:
        form = {
            "channel": "whatsapp",
            "source": app.source,
            "destination": PERSON,
            "src.name": app.name,
            "template": json.dumps({"id": partner.template_id, "params": ["Ann", SECRET]}),
        }
        headers = {"apikey": partner.api_keys[-1]}
        response = await request(PORTS["service"], "POST", "/wa/api/v1/template/msg", headers, form=form)
        if response is not None and response.status == 200 and response.body is not None:
            self._acknowledged.append((response.body["messageId"], app.id))

    async def _erase(self) -> dict[str, Any] | None:
        """Erase until nothing follows; return the sums, None if a call failed."""
        erased, waiting, position = dict[str, int](), dict[str, int](), None
        for _ in range(MAX_CALLS):
            response = await self._call({"number": f"+{PERSON}"} | ({"position": position} if position else {}))
            if response is None or response.status != 200 or response.body is None:
                return None
            for sums, counts in ((erased, response.body["erased"]), (waiting, response.body["waiting"])):
                sums |= {name: sums.get(name, 0) + count for name, count in counts.items()}
            position = response.body["next"]
            if position is None:
                return {"erased": erased, "waiting": waiting, "complete": response.body["complete"]}
        return None

    async def _call(self, body: Mapping[str, str]) -> Response | None:
        headers = {"Authorization": f"Bearer {demo.ADMIN_TOKEN}"}
        return await request(PORTS["service"], "POST", "/admin/recipients/erase", headers, json_body=body)

    async def _check_traces(self, read: Read, table: Table) -> None:
        names = ", ".join(column.name for column in table.columns)
        for row in await read(f"SELECT {names} FROM {table.name}"):
            found = [name for name, value in zip(table.columns.keys(), row, strict=True) if _has_trace(value)]
            if found:
                self._break(f"after an erasure {table.name} has the person in {found}")

    def _check_ends(self, accepted: set[str]) -> None:
        """Each message that was acknowledged was sent, or its partner was told that it failed."""
        told = [one.body for one in self._observed.exchanges if one.site.startswith("receiver") and _FAILED in one.body]
        steady = {
            one.app_id for one in self._observed.subscriptions.values() if one.is_steady and "FAILED" in one.modes
        }
        for message_id, app_id in self._acknowledged:
            is_told = app_id not in steady or any(message_id.encode() in body for body in told)
            if message_id not in accepted and not is_told:
                self._break(f"{message_id} to the person was acknowledged, and neither sent nor called back as failed")

    def _break(self, text: str) -> None:
        self._observed.broken.append(text)


def _has_trace(value: Any) -> bool:
    """Return True if a value of a column has the person's number or words, compressed or not."""
    if isinstance(value, str):
        value = value.encode()
    return isinstance(value, bytes | memoryview) and any(_TRACE.search(text) for text in _readings(bytes(value)))


def _readings(content: bytes) -> Iterable[bytes]:
    yield content
    for decompress in (CALLBACK_BODIES.decompress, REQUESTS.decompress, zlib.decompress):
        try:
            yield decompress(content)
        except zlib.error:
            continue
