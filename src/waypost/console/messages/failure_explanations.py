"""Table of failure codes: why a message failed, and what its sender can do.

The operator's own text is stored with the message. How dispatch treats each code is another table
(`docs/reference/operator-codes.md`).
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Failure:
    """Explanation of one failure code.

    Attributes:
        what: what happened, in a few words.
        remedy: what to do, in a sentence.
    """

    what: str
    remedy: str


# fmt: off
FAILURES: Final = {  # Source: operator's facts 5.2; facts 12; the fix hints are ours
    # code           what                                                    fix hint
    500:     Failure("The operator rejects our credentials",                 "The message itself is fine. The administrator must fix the operator account; then send the message again."),
    1001:    Failure("The app name and the number do not match",             "Use the name of the app that owns the source number as src.name, or omit src.name, and send it again."),
    4001:    Failure("The operator's rate limit was exceeded",               "Send it again later, and send fewer messages at once."),
    4002:    Failure("It is unknown whether the message arrived",            "The operator did not respond in time. Check with the recipient before you send it again."),
    33:      Failure("The number was deleted at the operator",               "The administrator must connect the app to an existing number."),
    100:     Failure("A parameter is invalid",                               "Compare the request with the template and the operator's error text, then send it again."),
    368:     Failure("The account is temporarily blocked",                   "Read the notices in the operator's console. Sending resumes when the block ends."),
    130403:  Failure("You have blocked the recipient",                       "Unblock the recipient, then send it again."),
    130429:  Failure("The number's throughput limit was exceeded",           "Send fewer messages per second, or request a higher throughput."),
    130472:  Failure("The recipient is in an experiment of the operator",    "Marketing messages do not reach this recipient for now. Do not retry; send a utility template instead."),
    130497:  Failure("The business may not send to this country",            "The operator does not allow this account to send messages there."),
    131000:  Failure("Internal error at the operator",                       "Send it again."),
    131005:  Failure("Permission denied by the operator",                    "The administrator must fix the permissions of the operator account; then send it again."),
    131008:  Failure("A required parameter is missing",                      "Provide every parameter of the template, then send it again."),
    131009:  Failure("A parameter has an invalid value",                     "Correct the parameter that the operator names, then send it again."),
    131016:  Failure("The operator was unavailable",                         "Send it again."),
    131021:  Failure("The recipient is the sender",                          "Send it to a number other than the app's own."),
    131026:  Failure("The number cannot receive this message",               "The number has no account or an outdated client. Contact the recipient in another way."),
    131030:  Failure("The recipient is not allowed for a test number",       "Add the recipient to the five allowed recipients of the test number in the operator's console."),
    131031:  Failure("The business account is locked",                       "Read the notices in the operator's console and request a review."),
    131037:  Failure("The number has no approved display name",              "Set a display name in the operator's console, and send again after it is approved."),
    131042:  Failure("Payment problem of the business account",              "Fix the payment method of the business account in the operator's console."),
    131045:  Failure("The number is not registered correctly",               "Register the number again in the operator's console."),
    131047:  Failure("The 24-hour window is closed",                         "Send a template. Session messages are accepted only within 24 hours of the recipient's last message."),
    131048:  Failure("The number is limited because of spam reports",        "Send fewer unwanted messages and wait until the quality rating recovers."),
    131049:  Failure("The recipient's marketing limit is reached",           "Wait at least 24 hours before you send it again."),
    131050:  Failure("The recipient has stopped your marketing messages",    "Do not send marketing messages to this recipient."),
    131051:  Failure("The message type is not supported",                    "Send another type of message."),
    131053:  Failure("The media file cannot be fetched or used",             "Check that its URL is public and that its type and size are allowed, then send it again."),
    131056:  Failure("Too many messages to this recipient",                  "Send this recipient fewer messages in a short time."),
    131057:  Failure("The number is being upgraded",                         "Send it again in a few minutes."),
    131062:  Failure("A phone number is required as recipient",              "Send it to the phone number, not to the business-scoped ID."),
    131063:  Failure("Marketing messages are disabled for this account",     "Send a utility template, or contact the operator."),
    132000:  Failure("The number of parameters does not match the template", "Provide as many parameters as the template has variables, then send it again."),
    132001:  Failure("The operator has no such approved template",           "Wait until the template is approved, or submit it again."),
    132005:  Failure("The text with its parameters is too long",             "Shorten the parameters, then send it again."),
    132007:  Failure("The text violates the operator's policy",              "Change the template's text and submit it again."),
    132012:  Failure("A parameter's format does not match the template",     "Send the parameter types that the template's header and buttons require."),
    132015:  Failure("The template is paused",                               "It resumes automatically after some hours. Improve it in the meantime, or send another template."),
    132016:  Failure("The template is disabled",                             "It was paused too often. Create a new template."),
    132018:  Failure("A template parameter is invalid",                      "Correct the parameter that the operator names, then send it again."),
    132068:  Failure("The flow is blocked",                                  "Correct the flow at the operator."),
    132069:  Failure("The flow is throttled",                                "Send it to fewer recipients; the limit is ten per hour."),
    133010:  Failure("The number is not registered",                         "Register the number in the operator's console."),
    135000:  Failure("The request is invalid",                               "Compare the request with the operator's error text, then send it again."),
    137000:  Failure("The recipient's identity has changed",                 "Verify that it is still the same person before you send again."),
}
# fmt: on

_OTHER: Final = Failure(
    "Rejected by the operator", "Read the operator's error text, and open a message to see its trace."
)


def failure_of(code: int | None) -> Failure:
    """Return the explanation of a code, or a general one for an unknown code."""
    return FAILURES.get(code, _OTHER) if code is not None else _OTHER
