"""The error of the control API."""


class ControlApiError(Exception):
    """A request to the control API is invalid.

    Args:
        field: the invalid member, as the control API spells it.
        accepted: the accepted values; empty if the rule names them.
        hint: replaces a long `accepted` in the sentence.
    """

    def __init__(self, field: str, rule: str, accepted: str, *, status: int = 400, hint: str = "") -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule
        self.accepted = accepted
        self.status = status
        self.hint = hint

    def response_body(self) -> dict[str, str]:
        """Return the body of the response."""
        hint = self.hint or (f"accepted: {self.accepted}" if self.accepted else "")
        return {
            "error": f"{self}; {hint}" if hint else str(self),
            "field": self.field,
            "rule": self.rule,
            "accepted": self.accepted,
            **({"hint": self.hint} if self.hint else {}),
        }
