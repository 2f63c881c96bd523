"""Requests with an `Idempotency-Key`: carried out once; repeats get the same response (decision 0044)."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import Connection

from waypost.api.authorisation import (
    Credential,
    KeyHolder,
    app_in_path,
    holder_may_use,
    holder_of_api_key,
    partner_of_token,
)
from waypost.api.requests import ApiResponse, IdempotentRequest, Request, read_body, read_parts
from waypost.api.route import BodyFormat, Endpoint, IdempotencyMode, RouteRow
from waypost.api.services import Services
from waypost.api.uploads import MAX_OVERHEAD_BYTES
from waypost.base.telemetry.logs import log
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.media import MAX_UPLOAD_BYTES
from waypost.domain.message import Message
from waypost.store.messages.messages import record_messages
from waypost.store.requests.idempotency import (
    EarlierRequest,
    IdempotencyKeyLost,
    KeyedRequest,
    encryption_context,
    find_earlier_request,
    has_unknown_outcome,
    mark_outcome_unknown,
    mark_running,
    record_keyed_messages,
    unmark_running,
    write_keyed,
)

WriteResult = TypeVar("WriteResult")

KEY_HEADER: Final = b"idempotency-key"
REPLAYED_HEADER: Final = ("Idempotent-Replayed", "true")
MAX_KEY_CHARS: Final = 255
KEY_RETRY_S: Final = 1
_log = log("api")


class _StoredResponse(msgspec.Struct, array_like=True):
    """A response as it is stored, before it is encrypted."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


_encode_response: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_StoredResponse).decode


async def run_idempotent(services: Services, request: Request, row: RouteRow, endpoint: Endpoint) -> ApiResponse:
    """Carry out a request that has a key, or return the stored response of the earlier one.

    Only successes are stored: a request that ended in an error changed nothing and is carried out
    again. Neither a replay nor an error counts toward a rate.

    Raises:
        ApiError: as the endpoint does; 400 invalid key, 422 the key was used for another body, 409 the
            key's request is still being carried out.
    """
    caller = await _identify_caller(services, request)
    if caller is None:
        return await endpoint(services, request)  # it raises the error, with its own text
    partner_id, app_id, holder = caller
    keyed = IdempotentRequest(
        partner_id=partner_id,
        route=row.name if app_id is None else f"{row.name} {app_id}",
        key=_read_key(request),
        at_ms=services.clock.now_ms(),
        app_id=app_id,
    )
    streams = row.body_format is BodyFormat.MULTIPART
    await _fingerprint_body(request, keyed, streams=streams)
    earlier = None
    if row.idempotency is IdempotencyMode.MARKED_FIRST:
        keyed.holder = services.ids.new()
        earlier, keyed.begun_before = await services.database.write(_mark_request, keyed.keyed_request)
    elif row.calls_out:
        earlier = await services.database.read(find_earlier_request, keyed.keyed_request)
    if earlier is None:
        try:
            return await _carry_out(services, request, keyed, endpoint)
        except ApiError:
            if row.calls_out:
                raise
            # Most keys are new, so the stored response is looked up late: by the transaction, or here.
            earlier = await services.database.read(find_earlier_request, keyed.keyed_request)
            if earlier is None or not await _may_read_response(services, holder, earlier):
                raise
            await request.refund(services.limiter)
    elif not await _may_read_response(services, holder, earlier):
        request.idempotency = None
        return await endpoint(services, request)  # it raises the error: the token is for another app
    if streams:
        await _read_to_end(request)
    return _replay(services, keyed, earlier)


async def commit(
    services: Services,
    request: Request,
    work: Callable[..., WriteResult],
    *args: Any,
    make_response: Callable[[WriteResult], ApiResponse],
) -> ApiResponse:
    """Run a write; if the request has a key, store its response in the same transaction.

    Args:
        services: of the endpoint.
        request: the request.
        work: the write: a function of a connection and `args`.
        args: its further arguments.
        make_response: makes the response from its result; if it raises, nothing is written.

    Returns:
        The response; or the one already stored under the key, and then nothing is written.
    """
    keyed = request.idempotency
    if keyed is None:
        return make_response(await services.database.write(work, *args))
    responses: list[ApiResponse] = []

    def seal(result: WriteResult) -> bytes:
        responses[:] = [make_response(result)]
        return _encrypt_response(services, keyed, responses[0])

    def run(connection: Connection) -> WriteResult:
        return work(connection, *args)

    try:
        earlier = await services.database.write(write_keyed, keyed.keyed_request, run, seal)
    except IdempotencyKeyLost as error:
        raise _key_in_use_error() from error
    if earlier is not None:
        return _replay(services, keyed, earlier)
    keyed.is_complete = True
    return responses[0]


async def record_message(services: Services, request: Request, message: Message, response: ApiResponse) -> ApiResponse:
    """Store a message with its outbound job; the most frequent write, so it joins a group commit.

    Returns:
        The response; or the one already stored under the request's key, and then nothing is written.

    Raises:
        ApiError: 429, the partner has reached a quota of what may wait; nothing is written.
    """
    count = await services.quotas.admit_message(message.partner_id)
    try:
        keyed = request.idempotency
        if keyed is None:
            await services.database.join_from_request(record_messages, message)
            return response
        keyed.app_id = message.app_id
        item = (keyed.keyed_request, message, _encrypt_response(services, keyed, response))
        earlier = await services.database.join_from_request(record_keyed_messages, item)
        if earlier is not None:
            return _replay(services, keyed, earlier)
        keyed.is_complete = True
        return response
    finally:
        count.storing -= 1


async def _carry_out(services: Services, request: Request, keyed: IdempotentRequest, endpoint: Endpoint) -> ApiResponse:
    is_undone = False
    try:
        response = await endpoint(services, request)
        if not keyed.is_complete and response.status < 300:  # the endpoint wrote nothing itself
            endpoint_response = response
            response = await commit(services, request, _write_nothing, make_response=lambda _: endpoint_response)
    except ApiError as error:
        is_undone = error.code is not ErrorCode.OPERATOR_UNAVAILABLE
        raise
    finally:
        if keyed.holder is not None and not keyed.is_complete:
            await _unmark(services, keyed, is_undone=is_undone and not keyed.begun_before)
    if keyed.is_replay:
        await request.refund(services.limiter)
    return response


def _mark_request(connection: Connection, keyed_request: KeyedRequest) -> tuple[EarlierRequest | None, bool]:
    is_begun = has_unknown_outcome(connection, keyed_request)
    return mark_running(connection, keyed_request), is_begun


async def _unmark(services: Services, keyed: IdempotentRequest, *, is_undone: bool) -> None:
    """Make the key usable again at once; if that fails, it is usable once its mark expires.

    Args:
        services: of the endpoint.
        keyed: the request.
        is_undone: True if it is certain that nothing was done; otherwise the key stays marked as begun.
    """
    try:
        await services.database.write(unmark_running if is_undone else mark_outcome_unknown, keyed.keyed_request)
    except Exception:  # noqa: BLE001  the earlier error is reported, not this one
        _log.exception("an idempotency key could not be released", route=keyed.route)


async def _identify_caller(services: Services, request: Request) -> tuple[int, str | None, KeyHolder | None] | None:
    """Return the caller's partner id, the app id in the path and the API key's holder; None if not authorised."""
    try:
        if "app_id" in request.path:
            app = await app_in_path(services, request)
            return app.partner_id, app.id, None
        if request.credential == Credential.API_KEY:
            holder = await holder_of_api_key(services, request)
            return holder.partner_id, None, holder
        return await partner_of_token(services, request), None, None
    except ApiError:
        return None


async def _may_read_response(services: Services, holder: KeyHolder | None, earlier: EarlierRequest) -> bool:
    """True if the caller may see the stored response: an app's token sent as an API key opens only that app."""
    if holder is None or holder.app_token_hash is None or earlier.app_id is None:
        return True
    app = await services.directory.app(earlier.app_id)
    return app is not None and await holder_may_use(services, holder, app)


def _read_key(request: Request) -> str:
    key = request.header(KEY_HEADER) or ""
    if not 1 <= len(key) <= MAX_KEY_CHARS or not all(" " <= char <= "~" for char in key):
        raise ApiError(
            ErrorCode.KEY_BROKEN,
            f"Idempotency-Key must have 1 to {MAX_KEY_CHARS} characters of printable ASCII; "
            "a random UUID for each request is best.",
        )
    return key


async def _fingerprint_body(request: Request, keyed: IdempotentRequest, *, streams: bool) -> None:
    """Fingerprint the body: now, or a multipart body's parts as they are read."""
    request.idempotency = keyed
    if not streams:
        keyed.fingerprint.add(request.body)
        return
    if request.media_type() == "multipart/form-data" or request.receive is None:
        return
    body = await read_body(request.scope, request.receive)
    keyed.fingerprint.add(body)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    request.receive = receive


async def _read_to_end(request: Request) -> None:
    """Read the parts only for their fingerprint."""
    size_bytes = 0
    if request.media_type() != "multipart/form-data":
        return
    async for part in read_parts(request):
        size_bytes += len(part) if isinstance(part, bytes) else 0
        if size_bytes > MAX_UPLOAD_BYTES + MAX_OVERHEAD_BYTES:
            raise _different_request_error()  # a body this large was never accepted


def _encrypt_response(services: Services, keyed: IdempotentRequest, response: ApiResponse) -> bytes:
    stored = _StoredResponse(response.status, response.headers, response.bytes().decode())
    return services.secret_box.seal(_encode_response(stored).decode(), owner=_encryption_context(keyed))


def _replay(services: Services, keyed: IdempotentRequest, earlier: EarlierRequest) -> ApiResponse:
    """Return the stored response of the same request, byte for byte.

    Raises:
        ApiError: the key's request was a different one, or has no response yet.
    """
    if earlier.body_hash != keyed.fingerprint.value:
        raise _different_request_error()
    if earlier.response is None:
        raise _key_in_use_error()
    stored = _decode(services.secret_box.open(earlier.response, owner=_encryption_context(keyed)))
    keyed.is_complete = keyed.is_replay = True
    return ApiResponse(stored.body.encode() or None, stored.status, headers=(*stored.headers, REPLAYED_HEADER))


def _encryption_context(keyed: IdempotentRequest) -> str:
    return encryption_context(keyed.partner_id, keyed.route, keyed.key)


def _write_nothing(_connection: Connection) -> None:
    """Write nothing: only the response is stored."""


def _different_request_error() -> ApiError:
    return ApiError(
        ErrorCode.KEY_OF_ANOTHER_REQUEST,
        "Idempotency-Key was used for a request with another body within the last 24 hours; "
        "a new request needs a new key.",
    )


def _key_in_use_error() -> ApiError:
    return ApiError(
        ErrorCode.KEY_IN_USE,
        "The first request with this Idempotency-Key is still being carried out; try again shortly.",
        retry_after_s=KEY_RETRY_S,
    )
