"""The state of a Flow that is being played, the effects of an input, and the error of an input that is not allowed."""

from typing import Any, Final, Literal

from msgspec import Struct, field

MAX_DATA_BYTES: Final = 1024 * 1024
"""Of the data of one screen, which is the operator's limit for a response of an endpoint."""
MAX_STATE_BYTES: Final = 4 * 1024 * 1024
"""Of the data and values of all screens together."""
MAX_VALUE_CHARS: Final = 10_000
"""Of one value that a person enters."""
GENERAL_ERROR: Final = "Something went wrong. Please try again later."
TOKEN_INVALID: Final = "This form is no longer available."  # noqa: S105  a text


class StepNotAllowed(ValueError):
    """The handset does not allow an input.

    Attributes:
        target: the field, button or screen.
        rule: which rule forbids it.
        accepted: what would be accepted; empty if nothing would.
        state: what the input has changed nevertheless, such as errors beside fields; None: nothing.
    """

    def __init__(self, target: str, rule: str, accepted: str = "", state: "FlowState | None" = None) -> None:
        """Remember what is not allowed, and why."""
        super().__init__(f"{target}: {rule}")
        self.state = state
        self.target = target
        self.rule = rule
        self.accepted = accepted


class UploadedFile(Struct, frozen=True):
    """A file that a person has chosen in a picker; the content is the caller's."""

    media_id: str
    file_name: str
    mime_type: str
    size_bytes: int


class ScreenMemory(Struct, frozen=True):
    """The data and inputs of a screen.

    `values` has what a person has entered; the other inputs have their initial values. `corrected` names the inputs
    that were changed since their error messages came, and `is_checked` is True once a person tried to go on.
    """

    data: dict[str, Any] = {}
    values: dict[str, Any] = {}
    corrected: list[str] = []
    is_checked: bool = False


class ExchangeRequest(Struct, frozen=True):
    """A request to the endpoint: the caller sends it, and passes on the response or the failure.

    `files` has the media ids of each member of `data` that is a picker's value.
    """

    action: Literal["INIT", "data_exchange", "BACK"]
    screen: str
    data: dict[str, Any] = {}
    files: dict[str, list[str]] = {}


class ErrorNotice(Struct, frozen=True):
    """A notice to the endpoint that its response was not valid."""

    action: str
    screen: str
    error: str
    error_message: str


class SummaryRow(Struct, frozen=True):
    """An answer, as the person sees it later by a tap on the sent message."""

    label: str
    value: str


class FlowCompletion(Struct, frozen=True):
    """The end of a Flow: `payload` becomes `response_json`, with `flow_token`.

    `files` has the media ids of each member of `payload` that is a picker's value.
    """

    payload: dict[str, Any]
    screen: str
    is_success: bool = True
    files: dict[str, list[str]] = {}
    summary: list[SummaryRow] = []


class OpenedUrl(Struct, frozen=True):
    """An address that the handset opens in its browser."""

    url: str


FlowEffect = ExchangeRequest | ErrorNotice | FlowCompletion | OpenedUrl


class FlowState(Struct, frozen=True):
    """A Flow that is being played.

    Attributes:
        stack: the ids of the screens, the current one last; empty before the first one is shown.
        screens: the memory of the screens that were visited, also of those that were left by back.
        pending: the request whose response is awaited.
        failed: the request that failed last, which a refresh repeats.
        snackbar: a text at the foot of the screen; it stays while inputs are filled in.
        error: instead of a screen, or what ended the Flow; a text.
        ended: why the Flow has ended; empty while it has not.
    """

    flow_token: str = "unused"  # noqa: S105  the operator's default
    stack: list[str] = []
    screens: dict[str, ScreenMemory] = {}
    pending: ExchangeRequest | None = None
    failed: ExchangeRequest | None = None
    snackbar: str = ""
    error: str = ""
    is_closed: bool = False
    ended: Literal["", "completed", "token_invalid"] = ""
    completion: FlowCompletion | None = None

    @property
    def screen_id(self) -> str:
        """The current screen; empty if there is none."""
        return self.stack[-1] if self.stack else ""

    @property
    def memory(self) -> ScreenMemory:
        """The memory of the current screen."""
        return self.screens.get(self.screen_id, ScreenMemory())


class PlayedStep(Struct, frozen=True):
    """The state after an input, and what has to happen because of it."""

    state: FlowState
    effect: FlowEffect | None = None


class ShownFile(Struct, frozen=True):
    """A file in the value of a picker."""

    media_id: str
    file_name: str
    mime_type: str
    size_bytes: int = 0
    error: str = ""


class ShownOption(Struct, frozen=True, omit_defaults=True):
    """An option of a selection, or an item of a navigation list, by its `id`."""

    path: str
    id: str
    title: str
    description: str = ""
    metadata: str = ""
    enabled: bool = True
    selected: bool = False
    image: str = ""
    alt_text: str = ""
    color: str = ""
    badge: str = ""
    tags: list[str] = []
    end: dict[str, str] = {}


class ShownImage(Struct, frozen=True, omit_defaults=True):
    """A picture in base64."""

    src: str
    alt_text: str = ""


class ShownComponent(Struct, frozen=True, omit_defaults=True):
    """A component as it is shown; members that its type does not have are absent.

    `path` stays the same while the Flow does: the place in the screen's Flow JSON. `value` is what would be sent now.
    `error` is the text beside the field, and `rule` which rule it breaks. `blocks` is the structure of RichText and
    markdown, `limits` has those that count, such as `max-chars`, and `captions` those of a Footer.
    """

    path: str
    type: str
    name: str = ""
    label: str = ""
    text: str = ""
    description: str = ""
    helper_text: str = ""
    value: Any = None
    error: str = ""
    rule: str = ""
    required: bool = False
    enabled: bool = True
    input_type: str = ""
    mode: str = ""
    options: list[ShownOption] = []
    files: list[ShownFile] = []
    images: list[ShownImage] = []
    blocks: list[dict[str, Any]] = []
    captions: dict[str, str] = {}
    limits: dict[str, Any] = {}
    style: dict[str, Any] = {}
    action: str = ""


class PlayerView(Struct, frozen=True):
    """The screen as the handset shows it.

    Attributes:
        state: `screen`, `busy` while a response is awaited, `error` instead of a screen, `closed`, `completed` or
            `token_invalid`.
        footer: the path of the Footer; empty if there is none.
        error: the text of an error screen, and of an invalid token.
    """

    state: Literal["screen", "busy", "error", "closed", "completed", "token_invalid"]
    screen_id: str = ""
    title: str = ""
    is_terminal: bool = False
    components: list[ShownComponent] = field(default_factory=list[ShownComponent])
    footer: str = ""
    can_go_back: bool = False
    snackbar: str = ""
    error: str = ""
    summary: list[SummaryRow] = field(default_factory=list[SummaryRow])
