"""Kannel as a product of the comparison: bearerbox and smsbox of Debian's package, with the file store, over SMPP."""

import re
import subprocess
import urllib.request
from typing import Any
from urllib.parse import urlencode

from benchmarks.peers.external import External, is_listening, make_folder, require_programs
from benchmarks.peers.product import SOURCE, TEXT, Surroundings
from benchmarks.processes import Child, free_port

INSTALL = "apt-get install -y kannel"
BEARERBOX, SMSBOX = "/usr/sbin/bearerbox", "/usr/sbin/smsbox"
QUIET = ("-v", "3")
"""Errors only: by default every protocol unit is written to the standard error."""
REPORTS = 1 + 8
"""Of `dlr-mask`: delivered, and accepted by the message centre."""
WINDOW = 100
"""Messages without a response on the SMPP connection; the default is 10."""
# fmt: off
CONFIGURATION = """\
group = core
admin-port = {admin}
admin-interface = 127.0.0.1
admin-password = bench
smsbox-port = {box}
smsbox-interface = 127.0.0.1
store-type = file
store-location = {folder}/store
dlr-storage = internal
log-file = {folder}/bearerbox.log
log-level = 3

group = smsc
smsc = smpp
smsc-id = upstream
host = 127.0.0.1
port = {smpp}
transceiver-mode = true
smsc-username = bench
smsc-password = bench
system-type = ""
max-pending-submits = {window}
reconnect-delay = 1

group = smsbox
bearerbox-host = 127.0.0.1
bearerbox-port = {box}
sendsms-port = {port}
sendsms-interface = 127.0.0.1
log-file = {folder}/smsbox.log
log-level = 3

group = sendsms-user
username = bench
password = bench
max-messages = 1
"""
# fmt: on


class KannelProduct:
    """bearerbox and smsbox, and the SMPP upstream."""

    name = "Kannel, file store"
    kinds = ("8", "1")

    def __init__(self, around: Surroundings) -> None:
        require_programs((BEARERBOX, SMSBOX), install=INSTALL)
        self._around = around
        self._folder = around.folder
        self.port, self._box_port, self._admin_port, self._smpp_port = (free_port() for _ in range(4))
        self._upstream: Child | None = None
        self._processes: list[External] = []
        self.description: dict[str, Any] = {
            "version": _version(),
            "settings": {"store-type": "file", "dlr-storage": "internal", "max-pending-submits": WINDOW},
            "upstream": "SMPP message centre",
            "notifications": f"dlr-mask {REPORTS}",
        }

    def start(self) -> None:
        make_folder(self._folder)
        configuration = CONFIGURATION.format(
            folder=self._folder, box=self._box_port, admin=self._admin_port, smpp=self._smpp_port, port=self.port,
            window=WINDOW,
        )  # fmt: skip
        (self._folder / "kannel.conf").write_text(configuration)
        self._upstream = start_upstream(self._around, self._smpp_port)
        self.restart()

    def restart(self) -> None:
        configuration = self._folder / "kannel.conf"
        bearerbox = External("bearerbox", [BEARERBOX, *QUIET, configuration], folder=self._folder)
        self._processes = [bearerbox]
        bearerbox.wait_listening(self._box_port)
        smsbox = External("smsbox", [SMSBOX, *QUIET, configuration], folder=self._folder)
        self._processes.append(smsbox)
        smsbox.wait_for(lambda: is_listening(self.port))
        bearerbox.wait_for(lambda: "online" in self._status())

    def end(self) -> None:
        for process in reversed(self._processes):
            process.end()
        if self._upstream is not None:
            self._upstream.end()

    def kill(self) -> None:
        for process in self._processes:
            process.kill()

    def request(self, number: int) -> bytes:
        query = urlencode({
            "username": "bench", "password": "bench", "from": SOURCE, "to": self._around.recipient(number),
            "text": TEXT, "dlr-mask": str(REPORTS),
            "dlr-url": f"http://127.0.0.1:{self._around.receiver_port}/n/{number}?k=%d",
        })  # fmt: skip
        return f"GET /cgi-bin/sendsms?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()

    def key(self, number: int, body: bytes) -> str:
        return str(number)

    def trees(self) -> dict[str, list[int]]:
        upstream = [self._upstream.pid] if self._upstream else []
        return {"product": [process.pid for process in self._processes], "upstream": upstream}

    def accepted_by_recipient(self) -> dict[str, int] | None:
        return self._upstream.get("/control/accepted") if self._upstream else None

    def _status(self) -> str:
        """Return the status page; empty while there is none."""
        url = f"http://127.0.0.1:{self._admin_port}/status.txt?password=bench"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return response.read().decode(errors="replace")
        except OSError:
            return ""


def start_upstream(around: Surroundings, smpp_port: int) -> Child:
    """Start the SMPP message centre."""
    child = Child(
        "benchmarks.peers.upstream",
        *("--smpp-port", str(smpp_port), "--report-after-ms", str(around.report_after_ms)),
        *("--respond-after-ms", str(around.respond_after_ms)),
    )
    child.wait_ready()
    return child


def _version() -> str:
    text = subprocess.run([BEARERBOX, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"version `([^']+)'", text.stdout + text.stderr)
    package = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "kannel"], capture_output=True, text=True, check=False
    )
    return f"{found[1] if found else '?'} (Debian {package.stdout.strip() or '?'})"
