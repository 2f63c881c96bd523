"""Table of failure codes: why a message failed, and what its sender can do.

The operator's own text is stored with the message. How dispatch treats each code is another table
(`docs/reference/operator-codes.md`).
"""

from typing import Final, NamedTuple


class FailureExplanation(NamedTuple):
    """Explanation of one failure code: what happened, in a few words, and what to do, in a sentence."""

    what: str
    fix_hint: str


_TEXTS: Final = {  # Source: operator's facts 5.2; facts 12; the fix hints are ours
    # code, what, fix hint
    500: (
        "The operator rejects our credentials",
        "The message itself is fine. The administrator must fix the operator account; then send the message again.",
    ),
    1001: (
        "The app name and the number do not match",
        "Use the name of the app that owns the source number as src.name, or omit src.name, and send it again.",
    ),
    4001: ("The operator's rate limit was exceeded", "Send it again later, and send fewer messages at once."),
    4002: (
        "It is unknown whether the message arrived",
        "The operator did not respond in time. Check with the recipient before you send it again.",
    ),
    33: ("The number was deleted at the operator", "The administrator must connect the app to an existing number."),
    100: (
        "A parameter is invalid",
        "Compare the request with the template and the operator's error text, then send it again.",
    ),
    368: (
        "The account is temporarily blocked",
        "Read the notices in the operator's console. Sending resumes when the block ends.",
    ),
    130403: ("You have blocked the recipient", "Unblock the recipient, then send it again."),
    130429: (
        "The number's throughput limit was exceeded",
        "Send fewer messages per second, or request a higher throughput.",
    ),
    130472: (
        "The recipient is in an experiment of the operator",
        "Marketing messages do not reach this recipient for now. Do not retry; send a utility template instead.",
    ),
    130497: (
        "The business may not send to this country",
        "The operator does not allow this account to send messages there.",
    ),
    131000: ("Internal error at the operator", "Send it again."),
    131005: (
        "Permission denied by the operator",
        "The administrator must fix the permissions of the operator account; then send it again.",
    ),
    131008: ("A required parameter is missing", "Provide every parameter of the template, then send it again."),
    131009: ("A parameter has an invalid value", "Correct the parameter that the operator names, then send it again."),
    131016: ("The operator was unavailable", "Send it again."),
    131021: ("The recipient is the sender", "Send it to a number other than the app's own."),
    131026: (
        "The number cannot receive this message",
        "The number has no account or an outdated client. Contact the recipient in another way.",
    ),
    131030: (
        "The recipient is not allowed for a test number",
        "Add the recipient to the five allowed recipients of the test number in the operator's console.",
    ),
    131031: ("The business account is locked", "Read the notices in the operator's console and request a review."),
    131037: (
        "The number has no approved display name",
        "Set a display name in the operator's console, and send again after it is approved.",
    ),
    131042: (
        "Payment problem of the business account",
        "Fix the payment method of the business account in the operator's console.",
    ),
    131045: ("The number is not registered correctly", "Register the number again in the operator's console."),
    131047: (
        "The 24-hour window is closed",
        "Send a template. Session messages are accepted only within 24 hours of the recipient's last message.",
    ),
    131048: (
        "The number is limited because of spam reports",
        "Send fewer unwanted messages and wait until the quality rating recovers.",
    ),
    131049: ("The recipient's marketing limit is reached", "Wait at least 24 hours before you send it again."),
    131050: ("The recipient has stopped your marketing messages", "Do not send marketing messages to this recipient."),
    131051: ("The message type is not supported", "Send another type of message."),
    131053: (
        "The media file cannot be fetched or used",
        "Check that its URL is public and that its type and size are allowed, then send it again.",
    ),
    131056: ("Too many messages to this recipient", "Send this recipient fewer messages in a short time."),
    131057: ("The number is being upgraded", "Send it again in a few minutes."),
    131062: ("A phone number is required as recipient", "Send it to the phone number, not to the business-scoped ID."),
    131063: ("Marketing messages are disabled for this account", "Send a utility template, or contact the operator."),
    132000: (
        "The number of parameters does not match the template",
        "Provide as many parameters as the template has variables, then send it again.",
    ),
    132001: ("The operator has no such approved template", "Wait until the template is approved, or submit it again."),
    132005: ("The text with its parameters is too long", "Shorten the parameters, then send it again."),
    132007: ("The text violates the operator's policy", "Change the template's text and submit it again."),
    132012: (
        "A parameter's format does not match the template",
        "Send the parameter types that the template's header and buttons require.",
    ),
    132015: (
        "The template is paused",
        "It resumes automatically after some hours. Improve it in the meantime, or send another template.",
    ),
    132016: ("The template is disabled", "It was paused too often. Create a new template."),
    132018: ("A template parameter is invalid", "Correct the parameter that the operator names, then send it again."),
    132021: ("An ordinary template has the name", "Name another template in direct_send_config, then send it again."),
    132068: ("The flow is blocked", "Correct the flow at the operator."),
    132069: ("The flow is throttled", "Send it to fewer recipients; the limit is ten per hour."),
    133010: ("The number is not registered", "Register the number in the operator's console."),
    135000: ("The request is invalid", "Compare the request with the operator's error text, then send it again."),
    137000: ("The recipient's identity has changed", "Verify that it is still the same person before you send again."),
    138000: ("Calls are not enabled for the number", "Enable calls for the app, then send it again."),
    138018: (
        "The account has no subscription to calls",
        "Subscribe the operator's app to the field calls, then send it again.",
    ),
    139200: (
        "Direct Send is blocked for the account",
        "Send an approved template until the operator's restriction ends.",
    ),
}
FAILURES: Final = {code: FailureExplanation(*texts) for code, texts in _TEXTS.items()}
_OTHER: Final = FailureExplanation(
    "Rejected by the operator", "Read the operator's error text, and open a message to see its trace."
)


def explain_failure(code: int | None) -> FailureExplanation:
    """Return the explanation of a code, or a general one for an unknown code."""
    return FAILURES.get(code, _OTHER) if code is not None else _OTHER
