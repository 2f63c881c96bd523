"""What is wrong with something that was asked for, in the parts in which the control API says it."""


class BrokenRule(Exception):
    """Something in a request to the control API cannot be.

    Args:
        field: where, as the control API spells it.
        rule: what is wrong.
        accepted: what would do; empty where the rule says so.
        status: of the response.
        hint: stands in the sentence in place of what would be accepted, where that is long.
    """

    def __init__(self, field: str, rule: str, accepted: str, *, status: int = 400, hint: str = "") -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule
        self.accepted = accepted
        self.status = status
        self.hint = hint

    def answer(self) -> dict[str, str]:
        """The body of the response."""
        remedy = self.hint or (f"accepted: {self.accepted}" if self.accepted else "")
        return {
            "error": f"{self}; {remedy}" if remedy else str(self),
            "field": self.field,
            "rule": self.rule,
            "accepted": self.accepted,
            **({"hint": self.hint} if self.hint else {}),
        }
