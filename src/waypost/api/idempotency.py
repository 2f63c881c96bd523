"""Requests with an `Idempotency-Key`: carried out once, and answered alike however often they come (decision 0044)."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import Connection

from waypost.api.auth.authorisation import (
    KeyHolder,
    app_of_api_key,
    app_of_app_token,
    app_of_partner_token,
    holder_of_api_key,
    opens,
    partner_of_token,
)
from waypost.api.auth.credentials import Credential
from waypost.api.http.idempotent_request import Keyed
from waypost.api.http.multipart import read_parts
from waypost.api.http.requests import Answer, Request, read_body
from waypost.api.route import Carries, Endpoint, Once, RouteRow
from waypost.api.services import Services
from waypost.api.uploads.uploads import MOST_AROUND_BYTES
from waypost.base.telemetry.logs import log
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.media import MOST_UPLOAD_BYTES
from waypost.domain.message import Message
from waypost.store.messages.messages import record_messages
from waypost.store.requests.idempotency import (
    Earlier,
    KeyedRequest,
    LostKey,
    earlier_request,
    leave_running,
    mark_running,
    record_keyed_messages,
    unmark_running,
    was_begun,
    write_keyed,
)

Result = TypeVar("Result")

HEADER: Final = b"idempotency-key"
REPLAYED: Final = ("Idempotent-Replayed", "true")
LONGEST_KEY: Final = 255
AGAIN_S: Final = 1
_log = log("api")


class _Kept(msgspec.Struct, array_like=True):
    """An answer as it is kept, before it is sealed."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Kept).decode


async def once(services: Services, request: Request, row: RouteRow, endpoint: Endpoint) -> Answer:
    """Carry out a request that has a key, or answer as it was answered before.

    Only successes are kept: a refusal has changed nothing, and is made anew. Neither a replay nor a
    refusal spends of a rate.

    Raises:
        Refused: as the endpoint does; 400 the key, 422 it was used for another body, 409 its request is
            still being carried out.
    """
    asker = await _asker(services, request)
    if asker is None:
        return await endpoint(services, request)  # it refuses, in its own words
    partner_id, app_id, holder = asker
    keyed = Keyed(
        partner_id=partner_id,
        route=row.name if app_id is None else f"{row.name} {app_id}",
        key=_read_key(request),
        at_ms=services.clock.now_ms(),
        app_id=app_id,
    )
    streams = row.carries is Carries.MULTIPART
    await _take_body(request, keyed, streams=streams)
    found = None
    if row.once is Once.MARKED:
        keyed.holder = services.ids.new()
        found, keyed.begun_before = await services.database.write(_mark, keyed.asked)
    elif row.calls:
        found = await services.database.read(earlier_request, keyed.asked)
    if found is None:
        try:
            return await _carried_out(services, request, keyed, endpoint)
        except ApiError:
            if row.calls:
                raise
            # Most keys are new, so what they hold is looked at late: by the transaction, or here.
            found = await services.database.read(earlier_request, keyed.asked)
            if found is None or not await _opens(services, holder, found):
                raise
            await request.give_back(services.limiter)
    elif not await _opens(services, holder, found):
        request.keyed = None
        return await endpoint(services, request)  # likewise: its token is for another app
    if streams:
        await _read_to_end(request)
    return _replay(services, keyed, found)


async def commit(
    services: Services, request: Request, work: Callable[..., Result], *args: Any, answer: Callable[[Result], Answer]
) -> Answer:
    """Run a write; where the request has a key, keep its answer in the same transaction.

    Args:
        services: of the door.
        request: the request.
        work: the write: a function of a connection and what follows here.
        args: for the write.
        answer: for what the write gives; it may refuse, and then nothing is written.

    Returns:
        The answer; or the one that the key holds already, and then nothing is written.
    """
    keyed = request.keyed
    if keyed is None:
        return answer(await services.database.write(work, *args))
    given: list[Answer] = []

    def sealed(result: Result) -> bytes:
        given[:] = [answer(result)]
        return _sealed(services, keyed, given[0])

    def worked(connection: Connection) -> Result:
        return work(connection, *args)

    try:
        found = await services.database.write(write_keyed, keyed.asked, worked, sealed)
    except LostKey as error:
        raise _in_use() from error
    if found is not None:
        return _replay(services, keyed, found)
    keyed.ended = True
    return given[0]


async def record_message(services: Services, request: Request, message: Message, answer: Answer) -> Answer:
    """Write a message with the entry that carries it; the busiest write, so all that wait share one.

    Returns:
        The answer; or the one that the request's key holds already, and then nothing is written.
    """
    keyed = request.keyed
    if keyed is None:
        await services.database.join_from_request(record_messages, message)
        return answer
    keyed.app_id = message.app_id
    item: tuple[KeyedRequest, Message, bytes] = (keyed.asked, message, _sealed(services, keyed, answer))
    found = await services.database.join_from_request(record_keyed_messages, item)
    if found is not None:
        return _replay(services, keyed, found)
    keyed.ended = True
    return answer


async def _carried_out(services: Services, request: Request, keyed: Keyed, endpoint: Endpoint) -> Answer:
    is_undone = False
    try:
        answer = await endpoint(services, request)
        if not keyed.ended and answer.status < 300:  # all it did was done by others
            done = answer
            answer = await commit(services, request, _nothing, answer=lambda _: done)
    except ApiError as refused:
        is_undone = refused.code is not ErrorCode.OPERATOR_UNAVAILABLE
        raise
    finally:
        if keyed.holder is not None and not keyed.ended:
            await _unmark(services, keyed, is_undone=is_undone and not keyed.begun_before)
    if keyed.replayed:
        await request.give_back(services.limiter)
    return answer


def _mark(connection: Connection, asked: KeyedRequest) -> tuple[Earlier | None, bool]:
    begun = was_begun(connection, asked)
    return mark_running(connection, asked), begun


async def _unmark(services: Services, keyed: Keyed, *, is_undone: bool) -> None:
    """Let the key be used again at once; if that fails, it can be once the mark has run out.

    Args:
        services: of the door.
        keyed: the request.
        is_undone: whether it is known that nothing was done; else it is remembered that it was begun.
    """
    try:
        await services.database.write(unmark_running if is_undone else leave_running, keyed.asked)
    except Exception:  # noqa: BLE001  what has gone wrong before is told, not this
        _log.exception("a key could not be given free", route=keyed.route)


async def _asker(services: Services, request: Request) -> tuple[int, str | None, KeyHolder | None] | None:
    """Whose request it is: the partner, the app in the path, and who holds an API key; None: nobody's."""
    in_path = "app_id" in request.path
    try:
        match request.credential:
            case Credential.API_KEY if not in_path:
                holder = await holder_of_api_key(services, request)
                return holder.partner_id, None, holder
            case Credential.API_KEY:
                app = await app_of_api_key(services, request)
            case Credential.PARTNER_TOKEN if not in_path:
                return await partner_of_token(services, request), None, None
            case Credential.PARTNER_TOKEN:
                app = await app_of_partner_token(services, request)
            case _:
                app = await app_of_app_token(services, request)
    except ApiError:
        return None
    return app.partner_id, app.id, None


async def _opens(services: Services, holder: KeyHolder | None, found: Earlier) -> bool:
    """Whether who asks may see what the key of a request holds: as an API key an app's token opens one app."""
    if holder is None or holder.app_token_hash is None or found.app_id is None:
        return True
    app = await services.directory.app(found.app_id)
    return app is not None and await opens(services, holder, app)


def _read_key(request: Request) -> str:
    key = request.header(HEADER) or ""
    if not 1 <= len(key) <= LONGEST_KEY or not all(" " <= char <= "~" for char in key):
        raise ApiError(
            ErrorCode.KEY_BROKEN,
            f"Idempotency-Key must have 1 to {LONGEST_KEY} characters of printable ASCII; "
            "a random UUID for each request is best.",
        )
    return key


async def _take_body(request: Request, keyed: Keyed, *, streams: bool) -> None:
    """Take the body's fingerprint: now, or of parts as they will be read."""
    request.keyed = keyed
    if not streams:
        keyed.fingerprint.add(request.body)
        return
    kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data" or request.receive is None:
        return
    body = await read_body(request.scope, request.receive)
    keyed.fingerprint.add(body)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    request.receive = receive


async def _read_to_end(request: Request) -> None:
    """Read the parts for their fingerprint only."""
    size_bytes = 0
    kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        return
    async for one in read_parts(request):
        size_bytes += len(one) if isinstance(one, bytes) else 0
        if size_bytes > MOST_UPLOAD_BYTES + MOST_AROUND_BYTES:
            raise _of_another()  # so large a one was never taken


def _sealed(services: Services, keyed: Keyed, answer: Answer) -> bytes:
    kept = _Kept(answer.status, answer.headers, answer.bytes().decode())
    return services.seals.seal(_encode(kept).decode(), of=_place(keyed))


def _replay(services: Services, keyed: Keyed, found: Earlier) -> Answer:
    """The earlier answer to the same request, byte for byte.

    Raises:
        Refused: it was another request, or it has no answer yet.
    """
    if found.body_hash != keyed.fingerprint.value:
        raise _of_another()
    if found.answer is None:
        raise _in_use()
    kept = _decode(services.seals.open(found.answer, of=_place(keyed)))
    keyed.ended = keyed.replayed = True
    return Answer(kept.body.encode() or None, kept.status, headers=(*kept.headers, REPLAYED))


def _place(keyed: Keyed) -> str:
    return f"idempotency {keyed.partner_id} {keyed.route} {keyed.key}"


def _nothing(_connection: Connection) -> None:
    """What is to be written was written already, or is others'."""


def _of_another() -> ApiError:
    return ApiError(
        ErrorCode.KEY_OF_ANOTHER_REQUEST,
        "Idempotency-Key was used for a request with another body within the last 24 hours; "
        "a new request needs a new key.",
    )


def _in_use() -> ApiError:
    return ApiError(
        ErrorCode.KEY_IN_USE,
        "The first request with this Idempotency-Key is still being carried out; try again shortly.",
        retry_after_s=AGAIN_S,
    )
