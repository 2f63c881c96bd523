"""What receivers got from the service, and the service from the operator, read as either of them reads it."""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from simulation.observed import PERSON, Exchange


class CallbackSeen(NamedTuple):
    """One attempt of a callback, as a receiver reads it."""

    path: str
    id: str
    sequence: int
    recipient: str
    subject: str  # our message id; of an inbound message the operator's id; of a template its id
    event: str
    code: int | None
    exchange: Exchange


class Tap(NamedTuple):
    """A tapped button of a template."""

    message_id: str  # ours, of the message with the button
    label: str
    postback: str | None


class Status(NamedTuple):
    """A status that the operator posted: from when to when, and its place in the post."""

    name: str
    began_s: float
    ended_s: float
    nth: int


def read_callbacks(exchanges: Iterable[Exchange]) -> list[CallbackSeen]:
    """Return every attempt of a callback that arrived whole, but those about the person whose data is erased."""
    callbacks = (_read_callback(one) for one in exchanges if "waypost-sequence" in one.headers and one.is_whole)
    return [one for one in callbacks if one.recipient != PERSON]


def _read_callback(one: Exchange) -> CallbackSeen:
    body = json.loads(one.body)
    recipient, subject, event, code = "", "", "template", None
    if "entry" in body:
        value = body["entry"][0]["changes"][0]["value"]
        for item in value.get("statuses", ()):
            code = next((error.get("code") for error in item.get("errors", ())), None)
            recipient, subject, event = item["recipient_id"], item["gs_id"], item["status"]
        for item in value.get("messages", ()):
            recipient, subject, event = item["from"], item["id"], "message"
        recipient = recipient or f"template {value.get('gs_template_id')}"
    elif body["type"] == "message-event":
        payload = body["payload"]
        code = payload["payload"].get("code") if payload["type"] == "failed" else None
        recipient, subject, event = payload["destination"], payload.get("gsId") or payload["id"], payload["type"]
    elif body["type"] == "message":
        recipient, subject, event = body["payload"]["source"], body["payload"]["id"], "message"
    else:
        recipient = f"template {body['payload'].get('id')}"
    callback_id, sequence = one.headers["waypost-callback-id"], int(one.headers["waypost-sequence"])
    return CallbackSeen(one.path, callback_id, sequence, recipient, subject, event, code, one)


def read_webhooks(
    exchanges: Iterable[Exchange], *, acknowledged: bool = True
) -> tuple[defaultdict[str, list[Status]], dict[str, str]]:
    """Return the statuses that the service acknowledged, by our message id, and the phones' messages with their number.

    Args:
        acknowledged: False: all that have reached it. A process may have stored them, and died before it answered.
    """
    statuses, inbound = defaultdict[str, list[Status]](list), dict[str, str]()
    for one in exchanges:
        done = [run for run in one.runs if not acknowledged or (run.status == 200 and run.ended_s is not None)]
        if not one.path.startswith("/operator/webhook/") or not done:
            continue
        try:
            entries = json.loads(one.body)["entry"]
        except json.JSONDecodeError:
            continue  # a part of it has arrived
        changes = [change for entry in entries for change in entry["changes"]]
        for run in done:
            nth = itertools.count()
            for value in [change["value"] for change in changes if change["field"] == "messages"]:
                for item in value.get("statuses", ()):
                    status = Status(item["status"], run.began_s, run.ended_s or 0, next(nth))
                    statuses[item["biz_opaque_callback_data"].split(" ")[0]].append(status)
                for item in [each for each in value.get("messages", ()) if each["from"] != PERSON]:
                    inbound[item["id"]] = value["metadata"]["phone_number_id"]
    return statuses, inbound


def read_tap(body: bytes) -> Tap | None:
    """Return what a callback says about a tapped button; None if it is about something else, or our id is not known."""
    members = json.loads(body)
    if "entry" in members:
        (message,) = members["entry"][0]["changes"][0]["value"]["messages"]
        if message["type"] != "button" or "gs_id" not in message.get("context", {}):
            return None
        return Tap(message["context"]["gs_id"], message["button"]["text"], message["button"].get("payload"))
    payload = members["payload"]
    if payload["type"] != "quick_reply" or "gsId" not in payload.get("context", {}):
        return None
    inner = payload["payload"]
    return Tap(payload["context"]["gsId"], inner["text"], inner.get("postbackText"))


def lost_template_update(exchanges: Iterable[Exchange]) -> bool:
    """True if the operator was told that a webhook about a template was received, and the service never got it."""
    return any(
        b"message_template_status_update" in one.body
        and one.status == 200
        and all(run.status != 200 for run in one.runs)
        for one in exchanges
        if one.path.startswith("/operator/webhook/")
    )


def by_path_and_subject(callbacks: list[CallbackSeen]) -> defaultdict[str, defaultdict[str, list[CallbackSeen]]]:
    """Return the first attempt of each callback about a message, in the order of sequence numbers."""
    seen = defaultdict[str, defaultdict[str, list[CallbackSeen]]](lambda: defaultdict(list))
    first = {one.id: one for one in reversed(callbacks) if one.event != "template"}
    for one in sorted(first.values(), key=lambda one: one.sequence):
        seen[one.path][one.subject].append(one)
    return seen


def not_overtaken(statuses: Iterable[Status], ranks: Mapping[str, int]) -> set[str]:
    """Return the statuses of a message that no higher one can have overtaken."""
    statuses = list(statuses)
    return {
        one.name
        for one in statuses
        if not any(
            ranks[other.name] > ranks[one.name]
            and (other.nth < one.nth if other.began_s == one.began_s else other.began_s < one.ended_s)
            for other in statuses
        )
    }
