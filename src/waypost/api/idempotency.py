"""Requests with an `Idempotency-Key`: carried out once; repeats get the same response (decision 0044)."""

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
    """A response as it is stored, before it is encrypted."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Kept).decode


async def once(services: Services, request: Request, row: RouteRow, endpoint: Endpoint) -> Answer:
    """Carry out a request that has a key, or return the stored response of the earlier one.

    Only successes are stored: a request that ended in an error changed nothing and is carried out
    again. Neither a replay nor an error counts toward a rate.

    Raises:
        ApiError: as the endpoint does; 400 invalid key, 422 the key was used for another body, 409 the
            key's request is still being carried out.
    """
    caller = await _asker(services, request)
    if caller is None:
        return await endpoint(services, request)  # it raises the error, with its own text
    partner_id, app_id, holder = caller
    keyed = Keyed(
        partner_id=partner_id,
        route=row.name if app_id is None else f"{row.name} {app_id}",
        key=_read_key(request),
        at_ms=services.clock.now_ms(),
        app_id=app_id,
    )
    streams = row.carries is Carries.MULTIPART
    await _take_body(request, keyed, streams=streams)
    earlier = None
    if row.once is Once.MARKED:
        keyed.holder = services.ids.new()
        earlier, keyed.begun_before = await services.database.write(_mark, keyed.asked)
    elif row.calls:
        earlier = await services.database.read(earlier_request, keyed.asked)
    if earlier is None:
        try:
            return await _carried_out(services, request, keyed, endpoint)
        except ApiError:
            if row.calls:
                raise
            # Most keys are new, so the stored response is looked up late: by the transaction, or here.
            earlier = await services.database.read(earlier_request, keyed.asked)
            if earlier is None or not await _opens(services, holder, earlier):
                raise
            await request.give_back(services.limiter)
    elif not await _opens(services, holder, earlier):
        request.keyed = None
        return await endpoint(services, request)  # it raises the error: the token is for another app
    if streams:
        await _read_to_end(request)
    return _replay(services, keyed, earlier)


async def commit(
    services: Services, request: Request, work: Callable[..., Result], *args: Any, answer: Callable[[Result], Answer]
) -> Answer:
    """Run a write; if the request has a key, store its response in the same transaction.

    Args:
        services: of the endpoint.
        request: the request.
        work: the write: a function of a connection and `args`.
        args: further arguments of `work`.
        answer: makes the response from the result of `work`; if it raises, nothing is written.

    Returns:
        The response; or the one already stored under the key, and then nothing is written.
    """
    keyed = request.keyed
    if keyed is None:
        return answer(await services.database.write(work, *args))
    responses: list[Answer] = []

    def seal(result: Result) -> bytes:
        responses[:] = [answer(result)]
        return _sealed(services, keyed, responses[0])

    def run(connection: Connection) -> Result:
        return work(connection, *args)

    try:
        earlier = await services.database.write(write_keyed, keyed.asked, run, seal)
    except LostKey as error:
        raise _in_use() from error
    if earlier is not None:
        return _replay(services, keyed, earlier)
    keyed.ended = True
    return responses[0]


async def record_message(services: Services, request: Request, message: Message, answer: Answer) -> Answer:
    """Store a message with its outbound job; the most frequent write, so it joins a group commit.

    Returns:
        The response; or the one already stored under the request's key, and then nothing is written.
    """
    keyed = request.keyed
    if keyed is None:
        await services.database.join_from_request(record_messages, message)
        return answer
    keyed.app_id = message.app_id
    item: tuple[KeyedRequest, Message, bytes] = (keyed.asked, message, _sealed(services, keyed, answer))
    earlier = await services.database.join_from_request(record_keyed_messages, item)
    if earlier is not None:
        return _replay(services, keyed, earlier)
    keyed.ended = True
    return answer


async def _carried_out(services: Services, request: Request, keyed: Keyed, endpoint: Endpoint) -> Answer:
    is_undone = False
    try:
        response = await endpoint(services, request)
        if not keyed.ended and response.status < 300:  # the endpoint wrote nothing itself
            endpoint_response = response
            response = await commit(services, request, _nothing, answer=lambda _: endpoint_response)
    except ApiError as error:
        is_undone = error.code is not ErrorCode.OPERATOR_UNAVAILABLE
        raise
    finally:
        if keyed.holder is not None and not keyed.ended:
            await _unmark(services, keyed, is_undone=is_undone and not keyed.begun_before)
    if keyed.replayed:
        await request.give_back(services.limiter)
    return response


def _mark(connection: Connection, asked: KeyedRequest) -> tuple[Earlier | None, bool]:
    is_begun = was_begun(connection, asked)
    return mark_running(connection, asked), is_begun


async def _unmark(services: Services, keyed: Keyed, *, is_undone: bool) -> None:
    """Make the key usable again at once; if that fails, it is usable once its mark expires.

    Args:
        services: of the endpoint.
        keyed: the request.
        is_undone: True if it is certain that nothing was done; otherwise the key stays marked as begun.
    """
    try:
        await services.database.write(unmark_running if is_undone else leave_running, keyed.asked)
    except Exception:  # noqa: BLE001  the earlier error is reported, not this one
        _log.exception("an idempotency key could not be released", route=keyed.route)


async def _asker(services: Services, request: Request) -> tuple[int, str | None, KeyHolder | None] | None:
    """Return the caller's partner id, the app id in the path and the API key's holder; None if not authorised."""
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
    """True if the caller may see the stored response: an app's token sent as an API key opens only that app."""
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
    """Fingerprint the body: now, or a multipart body's parts as they are read."""
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
    """Read the parts only for their fingerprint."""
    size_bytes = 0
    kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        return
    async for part in read_parts(request):
        size_bytes += len(part) if isinstance(part, bytes) else 0
        if size_bytes > MOST_UPLOAD_BYTES + MOST_AROUND_BYTES:
            raise _of_another()  # a body this large was never accepted


def _sealed(services: Services, keyed: Keyed, answer: Answer) -> bytes:
    stored = _Kept(answer.status, answer.headers, answer.bytes().decode())
    return services.seals.seal(_encode(stored).decode(), of=_place(keyed))


def _replay(services: Services, keyed: Keyed, found: Earlier) -> Answer:
    """Return the stored response of the same request, byte for byte.

    Raises:
        ApiError: the key's request was a different one, or has no response yet.
    """
    if found.body_hash != keyed.fingerprint.value:
        raise _of_another()
    if found.answer is None:
        raise _in_use()
    stored = _decode(services.seals.open(found.answer, of=_place(keyed)))
    keyed.ended = keyed.replayed = True
    return Answer(stored.body.encode() or None, stored.status, headers=(*stored.headers, REPLAYED))


def _place(keyed: Keyed) -> str:
    return f"idempotency {keyed.partner_id} {keyed.route} {keyed.key}"


def _nothing(_connection: Connection) -> None:
    """Write nothing: only the response is stored."""


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
