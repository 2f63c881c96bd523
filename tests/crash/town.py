"""A whole town of processes: the service, the simulator and a partner's receiver, set up over HTTP."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.crash.processes import Child, NotInTime, free_port
from tests.crash.stored import Stored

ADMIN_TOKEN: Final = "the admin token of a crash test"
CONTROL_TOKEN: Final = "the control token of a crash test"
SECRET_KEY: Final = "0123456789abcdef" * 4
STOP_WITHIN_S: Final = 10
SOURCE: Final = "15557000000"
APP_NAME: Final = "CrashApp"
WABA_ID: Final = "1000000000000071"
PHONE_NUMBER_ID: Final = "2000000000000072"
GRAPH_APP_ID: Final = "3000000000000073"
SECRETS: Final = {"token": "a-graph-token", "app_secret": "an-app-secret"}
VERIFY_TOKEN: Final = "a verify token"
IDLE_S: Final = 1
"""How long our own client keeps an idle connection: shorter than any server."""
MODES: Final = "SENT,DELIVERED,READ,FAILED,MESSAGE,TEMPLATE,ENQUEUED"
THROUGHPUT: Final = 1000
READ_AFTER_MS: Final = 100
LANES: Final = ("submissions", "arrivals", "callbacks")
"""The lanes that run empty; a doubt stays in its own for as long as `uncertain_for_s` says."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Partner:
    """What a partner holds in the hand."""

    app_id: str
    app_token: str
    api_key: str
    template_id: str


@dataclass(frozen=True, slots=True)
class Restart:
    """One end of the service and its next start.

    Attributes:
        in_hand: messages whose POST was under way, as the store of the dead process says.
        newest: the last position of the journal at that moment.
        began_s: when it was started again, by the steady clock.
        answered_after_s: how long it took to be ready from there.
    """

    in_hand: frozenset[str]
    newest: int
    began_s: float
    answered_after_s: float


class Town:
    """Three processes and a client of their doors; opened and closed.

    Args:
        folder: of the stores, the logs and the receiver's file.
        settings: of the service, beside those that every test needs.
    """

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        service, simulator, receiver = free_port(), free_port(), free_port()
        self.base = f"http://127.0.0.1:{service}"
        self.graph = f"http://127.0.0.1:{simulator}"
        self.callbacks = f"http://127.0.0.1:{receiver}"
        self.stored = Stored(folder / "service" / "waypost.db")
        self.received = folder / "callbacks.jsonl"
        waypost = [sys.executable, "-m", "waypost"]
        self.service = Child(
            "the service",
            [*waypost, "serve", "--data", str(folder / "service"), "--port", str(service)],
            {
                "WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN,
                "WAYPOST_SECRET_KEY": SECRET_KEY,
                "WAYPOST_RATES": "false",
                "WAYPOST_PER_SECOND": str(THROUGHPUT),
                "WAYPOST_ALLOWED_NETWORKS": "127.0.0.0/8",
                "WAYPOST_STOP_WITHIN_S": str(STOP_WITHIN_S),
                "WAYPOST_LOG_LEVEL": "warning",
                **(settings or {}),
            },
            folder / "service.log",
        )
        self.simulator = Child(
            "the simulator",
            [*waypost, "simulator", "--data", str(folder / "simulator"), "--port", str(simulator)],
            {"WAYPOST_CONTROL_TOKEN": CONTROL_TOKEN, "WAYPOST_LOG_LEVEL": "warning"},
            folder / "simulator.log",
        )
        script = str(Path(__file__).with_name("receiver.py"))
        self.receiver = Child(
            "the receiver",
            [sys.executable, script, str(receiver), str(self.received)],
            {},
            folder / "receiver.log",
        )
        self.children = (self.service, self.simulator, self.receiver)

    async def open(self) -> None:
        """Start all three and set them up, over HTTP only."""
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S),
            timeout=aiohttp.ClientTimeout(total=10),
        )
        for child in self.children:
            child.start()
        await self._answers(self.receiver, self.callbacks + "/")
        await self._answers(self.simulator, self.graph + "/control/state")
        await self._answers(self.service, self.base + "/readyz")
        self.partner = await self._set_up()

    async def close(self) -> None:
        """End all three."""
        await self.http.close()
        for child in self.children:
            await asyncio.to_thread(child.close)

    async def sends_something(self) -> None:
        """Return as soon as a POST to the operator is under way; after a while return all the same."""
        for _ in range(1000):
            if self.stored.in_hand():
                return
            await asyncio.sleep(0.001)

    async def simulator_answers_again(self) -> None:
        """Start the simulator on the file that the killed one has left."""
        self.simulator.start()
        await self._answers(self.simulator, self.graph + "/control/state")

    async def kill_and_restart(self) -> Restart:
        """Kill the service, look into its store, and start it on the same store and port."""
        self.service.kill()
        return await self.restart()

    async def restart(self) -> Restart:
        """Look into the store that an ended service has left, and start the next on it."""
        in_hand = frozenset(self.stored.in_hand())
        newest = self.stored.newest_position()
        began_s = time.monotonic()
        self.service.start()
        await self._answers(self.service, self.base + "/readyz")
        return Restart(in_hand, newest, began_s, time.monotonic() - began_s)

    async def backlog_settled(self, restart: Restart, *, within_s: float) -> float:
        """How long after a restart everything was settled that the one before had left."""
        await self.until(
            lambda: self._has_settled_up_to(restart.newest),
            f"the backlog of the restart at position {restart.newest} settles",
            within_s=within_s,
        )
        return time.monotonic() - restart.began_s

    async def settled(self, *, within_s: float) -> None:
        """Return when nothing is on its way any more: lanes empty, and every webhook delivered."""
        await self.until(self._is_quiet, "everything settles", within_s=within_s)

    async def until(
        self, is_so: Callable[[], Awaitable[bool]], what: str, *, within_s: float
    ) -> None:
        """Return when it is so.

        Raises:
            NotInTime: it is not; with what every process printed last.
        """
        until_s = time.monotonic() + within_s
        while not await is_so():
            if time.monotonic() > until_s:
                raise NotInTime(f"waited {within_s} s in vain: {what}\n{await self.report()}")
            await asyncio.sleep(0.05)

    async def has_no_doubts(self) -> bool:
        """Whether no uncertain message waits for its status any more."""
        return not (await self.lanes())["doubts"]

    async def report(self) -> str:
        """Where everything stands, for a failure."""
        try:
            stands = json.dumps([await self.lanes(), await self.control("GET", "state")])
        except (aiohttp.ClientError, TimeoutError, AssertionError) as error:
            stands = f"(the doors do not answer: {error!r})"
        return "\n".join([stands, *(child.last_lines() for child in self.children)])

    async def lanes(self) -> dict[str, dict[str, int]]:
        """How many entries stand in each lane, by their state."""
        return await self.admin("GET", "lanes")

    async def deliveries(self) -> list[Json]:
        """Every message that the simulator took, with the phone that has it."""
        found: list[Json] = []
        after = 0
        while True:
            page = await self.control("GET", f"deliveries?limit=5000&after={after}")
            found += page["deliveries"]
            if page["next"] is None:
                return found
            after = page["next"]

    async def admin(self, method: str, path: str, body: Json | None = None) -> Any:
        """One call of the administration door."""
        return await self._json(method, f"{self.base}/admin/{path}", ADMIN_TOKEN, body)

    async def control(self, method: str, path: str, body: Json | None = None) -> Any:
        """One call of the simulator's control door."""
        return await self._json(method, f"{self.graph}/control/{path}", CONTROL_TOKEN, body)

    async def writes(self, phone: str) -> None:
        """A phone writes to our number, which opens its window."""
        await self.control("POST", f"phones/{phone}/messages", {"to": SOURCE, "text": "Hello!"})

    async def _set_up(self) -> Partner:
        account = {**SECRETS, "app_id": GRAPH_APP_ID}
        await self.control("PUT", f"accounts/{WABA_ID}", {**account, "name": "Crash Business"})
        number = {"waba_id": WABA_ID, "phone_number": SOURCE, "name": "Crash"}
        await self.control(
            "PUT", f"numbers/{PHONE_NUMBER_ID}", {**number, "throughput": THROUGHPUT}
        )
        await self.control(
            "PUT", "settings", {"read_after_ms": READ_AFTER_MS, "review_delay_ms": 100}
        )
        made = await self.admin(
            "PUT",
            "operator-accounts/crash",
            {**account, "base_url": self.graph, "version": "v25.0", "verify_token": VERIFY_TOKEN},
        )
        await self.control(
            "PUT",
            f"apps/{GRAPH_APP_ID}/webhook",
            {"callback_uri": self.base + made["webhook_path"], "verify_token": VERIFY_TOKEN},
        )
        partner = await self.admin(
            "POST",
            "partners",
            {"email": "crash@waypost.test", "password": "Crash-1234", "name": "C"},
        )
        key = await self.admin("POST", f"partners/{partner['id']}/api-keys", {"name": "crash"})
        await self.admin(
            "POST",
            "business-accounts",
            {
                "id": WABA_ID,
                "partner_id": partner["id"],
                "namespace": "crash",
                "operator_account_id": "crash",
            },
        )
        app = await self.admin(
            "POST",
            "apps",
            {
                "partner_id": partner["id"],
                "name": APP_NAME,
                "phone_number": SOURCE,
                "phone_number_id": PHONE_NUMBER_ID,
                "business_account_id": WABA_ID,
            },
        )
        await self._app_call(
            app,
            "subscription",
            {"modes": MODES, "tag": "all", "url": self.callbacks + "/callbacks"},
        )
        template = await self._app_call(
            app,
            "templates",
            {
                "elementName": "parcel_ready",
                "languageCode": "en_US",
                "category": "UTILITY",
                "templateType": "TEXT",
                "vertical": "Parcels",
                "content": "Parcel {{1}} is ready. Shall we bring it?",
                "example": "Parcel [4711] is ready. Shall we bring it?",
                "buttons": json.dumps(
                    [{"type": "QUICK_REPLY", "text": text} for text in ("Yes", "No")]
                ),
                "enableSample": "true",
            },
        )
        template_id: str = template["template"]["id"]

        async def is_approved() -> bool:
            held = await self._app_call(app, "templates")
            return [one["status"] for one in held["templates"]] == ["APPROVED"]

        await self.until(is_approved, "the template is approved", within_s=20)
        return Partner(app["id"], app["app_token"], key["api_key"], template_id)

    async def _app_call(self, app: Json, path: str, form: Json | None = None) -> Json:
        async with self.http.request(
            "GET" if form is None else "POST",
            f"{self.base}/partner/app/{app['id']}/{path}",
            data=form,
            headers={"Authorization": app["app_token"]},
        ) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def _json(self, method: str, url: str, token: str, body: Json | None) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with self.http.request(method, url, json=body, headers=headers) as answer:
            assert answer.status == 200, f"{method} {url}: {await answer.text()}"
            return await answer.json()

    async def _answers(self, child: Child, url: str) -> None:
        headers = {"Authorization": f"Bearer {CONTROL_TOKEN}"}
        until_s = time.monotonic() + 30
        while child.status is None and time.monotonic() < until_s:
            try:
                async with self.http.get(url, headers=headers) as answer:
                    if answer.status == 200:
                        return
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(0.02)
        raise NotInTime(f"{url} does not answer\n{child.last_lines()}")

    async def _has_settled_up_to(self, position: int) -> bool:
        return await asyncio.to_thread(self.stored.open_up_to, position) == 0

    async def _is_quiet(self) -> bool:
        """In the order of the street, so that nothing can slip by from a lane not yet looked at."""
        if (await self.lanes())["submissions"]:
            return False
        state = await self.control("GET", "state")
        if any(account["updates_waiting"] for account in state["accounts"]):
            return False
        lanes = await self.lanes()
        return not any(lanes[name] for name in LANES)
