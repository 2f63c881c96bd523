"""What a template's status means for whoever wants to send it, and what to do."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.template import TemplateStatus as S


@dataclass(frozen=True, slots=True)
class Standing:
    """One status in words.

    Attributes:
        means: what it means.
        remedy: what to do; empty where there is nothing to be done.
    """

    means: str
    remedy: str = ""


# fmt: off
STANDINGS: Final = {  # Source: facts 3.4; operator's facts 3.1 and 2.6
    S.PENDING:           Standing("The operator reviews it.", "Wait; most reviews take minutes, some a day."),
    S.APPROVED:          Standing("It can be sent."),
    S.REJECTED:          Standing("The operator's review has rejected it; it cannot be sent.", "Mend what the reason says and send the edit: it is reviewed anew."),
    S.FAILED:            Standing("It could not be submitted to the operator.", "Look at the reason; then edit it, which submits it again, or delete it."),
    S.PAUSED:            Standing("Recipients have complained; the operator holds it back.", "It resumes by itself after hours. Say more clearly why you write, and to fewer people."),
    S.DISABLED:          Standing("Complaints have gone on; the operator has switched it off for good.", "Write another template, under another name."),
    S.IN_APPEAL:         Standing("Somebody has appealed against the operator's decision.", "Wait for the answer."),
    S.FLAGGED:           Standing("Its quality is low; it can still be sent, and may soon be paused.", "Send it to fewer people, and only to those who expect it."),
    S.LOCKED:            Standing("The operator has locked it: it cannot be sent or edited now.", "Wait until it is unlocked."),
    S.ARCHIVED:          Standing("It has not been used for long, and is archived.", "Have it taken out of the archive at the operator, or write a new one."),
    S.SANDBOX_REQUESTED: Standing("It is asked for in a sandbox."),
    S.DELETED:           Standing("It has been deleted. The page stays, for the traces of its messages."),
}
# fmt: on
