"""Names and numbers of a test's partner and phones, derived from the test's name so that they repeat."""

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

# Area code 555 is not assigned. Two halves of it, so that no phone has a business's number.
_SOURCES: Final = ("15550", "15551", "15552", "15553", "15554")
_PHONES: Final = ("15555", "15556", "15557", "15558", "15559")


@dataclass(frozen=True, slots=True)
class PartnerNames:
    """Names, numbers and ids of a partner that are known before it is created.

    The same test gets the same names at every run against a new service, whatever other tests run and
    in any order. Ids and secrets that the service makes are not included.

    Args:
        seed: the test's node id, or any other text.
        attempt: counts up while another partner already has the names.
    """

    seed: str
    attempt: int = 0

    @property
    def source(self) -> str:
        """The app's phone number, 11 digits."""
        return self._number(_SOURCES, "source")

    @property
    def waba_id(self) -> str:
        """The business account's id, 16 digits; the operator account is called the same."""
        return "7" + self._digits("account", 15)

    @property
    def phone_number_id(self) -> str:
        """The operator's id of the source number, 16 digits."""
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

    def phone(self, name: str, used: Collection[str] = ()) -> str:
        """Return the 11 digits of a person's phone.

        Args:
            name: of the person.
            used: digits of other phones.
        """
        for turn in range(100):
            digits = self._number(_PHONES, f"phone {name} {turn or ''}")
            if digits not in used:
                return digits
        raise ValueError(f"no digits are left for {name}")

    def secret(self, purpose: str) -> str:
        """Return 64 hex digits for a purpose."""
        return sha256(f"{self.seed}\n{self.attempt}\n{purpose}".encode()).hexdigest()

    def _number(self, prefixes: tuple[str, ...], purpose: str) -> str:
        number = int(self.secret(purpose)[:16], 16)
        return f"{prefixes[number % 5]}{number // 5 % 10**6:06d}"

    def _digits(self, purpose: str, count: int) -> str:
        return f"{int(self.secret(purpose), 16) % 10**count:0{count}d}"
