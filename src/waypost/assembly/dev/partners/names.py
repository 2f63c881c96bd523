"""Names, numbers and ids of a partner for a test, derived from a text so that they repeat."""

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

# Area code 555 is not assigned. Two halves of it, so that no phone has a business's number.
_SOURCE_PREFIXES: Final = ("15550", "15551", "15552", "15553", "15554")
_PHONE_PREFIXES: Final = ("15555", "15556", "15557", "15558", "15559")
_MAX_PHONE_ATTEMPTS: Final = 100


@dataclass(frozen=True, slots=True)
class DerivedNames:
    """Everything of a partner that is known before it is created.

    Args:
        seed: such as the test's name.
        attempt: counts up while another partner already has the names.
    """

    seed: str
    attempt: int = 0

    @property
    def source(self) -> str:
        """The app's phone number, 11 digits."""
        return self._number(_SOURCE_PREFIXES, "source")

    @property
    def waba_id(self) -> str:
        """The business account's id, 16 digits; the operator account has the same."""
        return "7" + self._digits("account", 15)

    @property
    def phone_number_id(self) -> str:
        """The operator's id of the number, 16 digits."""
        return "8" + self._digits("number", 15)

    @property
    def graph_app_id(self) -> str:
        """The id of the app at the operator, 16 digits."""
        return "9" + self._digits("app", 15)

    @property
    def app_name(self) -> str:
        """The app's name."""
        return f"Shop{self._digits('name', 8)}"

    @property
    def email(self) -> str:
        """The partner's e-mail address, for login."""
        return f"{self.app_name.lower()}@waypost.test"

    @property
    def namespace(self) -> str:
        """The namespace of its templates, an underscored UUID."""
        text = self.secret("namespace")
        return f"{text[:8]}_{text[8:12]}_4{text[13:16]}_8{text[17:20]}_{text[20:32]}"

    def phone(self, name: str, used: Collection[str]) -> str:
        """Return the 11 digits of a person's phone.

        Args:
            name: of the person.
            used: digits of the partner's other phones.
        """
        for turn in range(_MAX_PHONE_ATTEMPTS):
            digits = self._number(_PHONE_PREFIXES, f"phone {name} {turn or ''}")
            if digits not in used:
                return digits
        raise LookupError(f"no digits are left for {name}")

    def secret(self, purpose: str) -> str:
        """Return 64 hex digits for a purpose."""
        return sha256(f"{self.seed}\n{self.attempt}\n{purpose}".encode()).hexdigest()

    def _number(self, prefixes: tuple[str, ...], purpose: str) -> str:
        number = int(self.secret(purpose)[:16], 16)
        return f"{prefixes[number % 5]}{number // 5 % 10**6:06d}"

    def _digits(self, purpose: str, count: int) -> str:
        return f"{int(self.secret(purpose), 16) % 10**count:0{count}d}"
