"""The services of `deploy/compose.yaml`, started in its order with what is in the file.

Containers of the image are real. PostgreSQL and nginx are those of this machine, because their images are in a registry.
All share the network of the machine, so that only these are replaced:

| In the file | Here |
|---|---|
| the host names `database`, `waypost-1`, `waypost-2` with their ports | 127.0.0.1 with free ports |
| `listen 8080` of the proxy, and the port in `WAYPOST_PUBLIC_URL` | a free port |
| `WAYPOST_TRUSTED_PROXIES`, the network of the containers | 127.0.0.1/32, where the proxy's requests come from |
| `/tmp/nginx.pid` | a file of the run |

Added are `WAYPOST_PORT`, and `WAYPOST_ALLOWED_NETWORKS` for an operator and a receiver on this machine.
"""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

import psycopg
import yaml
from psycopg import sql

from crashes.processes import Child, free_port
from tests.deployment.building import ROOT, Configuration, Failed, path_of
from tests.deployment.delivery import CONTROL_TOKEN, Addresses, Delivery
from tests.deployment.runtimes import Container, Order, Runtime
from tests.deployment.single import SECRETS, Report, check, own_folder, wait_healthy, wait_until, write_secret
from tests.support.postgres import Server, binaries

DEPLOY: Final = ROOT / "deploy"
_DEFAULT: Final = re.compile(r"\$\{\w+:-([^}]*)\}")
_SECONDS: Final = re.compile(r"(\d+)s")


@dataclass
class Started:
    """What was started for the file, and where it listens."""

    ports: dict[str, int] = field(default_factory=dict[str, int])
    containers: dict[str, Container] = field(default_factory=dict[str, Container])
    database: Server | None = None
    proxy: Child | None = None


class ComposeUnderTest:
    """The services of the file.

    Args:
        runtime: runs the containers of the image.
        configuration: of the image.
        folder: for volumes, secrets and logs.
        report: gets a line for each start and stop.
    """

    def __init__(self, runtime: Runtime, configuration: Configuration, folder: Path, report: Report) -> None:
        self.file: Mapping[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
        self.services: Mapping[str, Mapping[str, Any]] = self.file["services"]
        self._runtime = runtime
        self._configuration = configuration
        self._folder = folder
        self._report = report
        self._data = own_folder(folder / "data", configuration)
        self.ports = {name: free_port() for name in self.services}
        self.secrets = {
            name: write_secret(folder / "secrets" / name) for name in self.file["secrets"] if name != "database_url"
        }
        url = f"postgresql://waypost:{self.secret('database_password')}@127.0.0.1:{self.ports['database']}/waypost"
        self.secrets["database_url"] = write_secret(folder / "secrets" / "database_url", url)
        self.started = Started()

    @property
    def url(self) -> str:
        """The URL of the proxy, as `WAYPOST_PUBLIC_URL` of the file has it."""
        return f"http://localhost:{self.ports['proxy']}"

    def secret(self, name: str) -> str:
        """Return the text of a secret."""
        return self.secrets[name].read_text(encoding="utf-8")

    def order(self) -> list[str]:
        """Return the services so that each comes after those it depends on."""
        ordered: list[str] = []
        while len(ordered) < len(self.services):
            ready = [
                name for name, service in self.services.items()
                if name not in ordered and set(service.get("depends_on", ())) <= set(ordered)
            ]  # fmt: skip
            check(ready, f"deploy/compose.yaml: services depend on each other: {set(self.services) - set(ordered)}")
            ordered += ready
        return ordered

    def start(self) -> None:
        """Start every service, each when those it depends on are healthy."""
        for name in self.order():
            began_s = time.monotonic()
            kind = str(self.services[name]["image"]).split(":")[0]
            {"postgres": self._start_database, "waypost": self._start_waypost, "nginx": self._start_proxy}[kind](name)
            self._report.timed(f"{name}: healthy", began_s)

    def stop(self) -> None:
        """Stop every service in the opposite order; each must end with exit code 0 within its grace period."""
        for name in reversed(self.order()):
            began_s = time.monotonic()
            grace = _SECONDS.fullmatch(str(self.services[name].get("stop_grace_period", "10s")))
            assert grace is not None
            if name in self.started.containers:
                container = self.started.containers[name]
                status = container.stop(int(grace[1]))
                check(status == 0, f"exit code {status} of {name}", container)
            elif name == "database":
                status = self._stop_database(int(grace[1]))
            else:
                status = self._stop_proxy()
            self._report.timed(f"{name}: stopped", began_s, f"exit code {status}")
            check(status == 0, f"exit code {status} of {name}")

    def close(self) -> None:
        """End what still runs; the runtime ends its containers itself."""
        if self.started.proxy is not None:
            self.started.proxy.close()
        if self.started.database is not None:
            self.started.database.stop()

    def _start_database(self, name: str) -> None:
        variables = self.services[name]["environment"]
        server = self.started.database = Server(self._folder / name, port=self.ports[name])
        server.make()
        server.start()
        user, database = str(variables["POSTGRES_USER"]), str(variables["POSTGRES_DB"])
        password = self.secret(Path(str(variables["POSTGRES_PASSWORD_FILE"])).name)
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(user), sql.Literal(password)))
        kind, program, *arguments = self.services[name]["healthcheck"]["test"]
        check(kind == "CMD", "the health check of the database is no command")
        command = [binaries() / program, *arguments, f"--port={server.port}"]
        wait_until(
            lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0, f"{command} fails"
        )

    def _start_waypost(self, name: str) -> None:
        service = self.services[name]
        variables = {key: _DEFAULT.sub(r"\1", text) for key, text in service["environment"].items()}
        variables |= {
            "WAYPOST_PORT": str(self.ports[name]),
            "WAYPOST_PUBLIC_URL": variables["WAYPOST_PUBLIC_URL"].replace(":8080", f":{self.ports['proxy']}"),
            "WAYPOST_TRUSTED_PROXIES": "127.0.0.1/32",
            "WAYPOST_ALLOWED_NETWORKS": "127.0.0.0/8",
        }
        targets = [volume.split(":")[1] for volume in service["volumes"]]
        files = {f"{SECRETS}/{secret}": self.secrets[secret] for secret in service["secrets"]}
        arguments = [str(part) for part in service.get("command", ())]
        container = self.started.containers[name] = self._runtime.start(
            Order(name, arguments, variables, dict.fromkeys(targets, self._data), files)
        )
        wait_healthy(container, self._configuration.health)

    def _start_proxy(self, name: str) -> None:
        source = str(self.services[name]["volumes"][0]).split(":")[0]
        text = (DEPLOY / source).read_text(encoding="utf-8")
        replaced = {f"{other}:8080": f"127.0.0.1:{self.ports[other]}" for other in self.started.containers}
        replaced |= {
            "listen 8080;": f"listen 127.0.0.1:{self.ports[name]};",
            "/tmp/nginx.pid": f"{self._folder}/nginx.pid",
        }
        for old, new in replaced.items():
            check(text.count(old) == 1, f"deploy/{source} has `{old}` {text.count(old)} times")
            text = text.replace(old, new)
        file = self._folder / "nginx.conf"
        file.write_text(text, encoding="utf-8")
        nginx = path_of("nginx")
        assert nginx is not None
        command = [nginx, "-e", "stderr", "-c", str(file), "-g", "daemon off;"]
        proxy = self.started.proxy = Child(name, command, {}, self._folder / "nginx.log")
        proxy.start()
        wait_until(lambda: self._responds(proxy), f"the proxy does not respond: {proxy.last_lines()}")

    def _responds(self, proxy: Child) -> bool:
        check(proxy.status is None, proxy.last_lines())
        try:
            with urlopen(f"{self.url}/readyz", timeout=10) as response:
                return response.status == 200
        except URLError:
            return False

    def _stop_database(self, grace_s: int) -> int:
        server = self.started.database
        if server is None or server.process is None:
            raise Failed("the database has ended")
        process = server.process
        process.terminate()  # as the image of PostgreSQL is stopped: without clients it ends at once
        try:
            return process.wait(grace_s)
        finally:
            server.stop()

    def _stop_proxy(self) -> int:
        assert self.started.proxy is not None
        self.started.proxy.close()
        status = self.started.proxy.status
        return 1 if status is None else status


def check_compose(runtime: Runtime, configuration: Configuration, folder: Path, report: Report) -> None:
    """Start the services, deliver a message through the proxy, and stop them."""
    print("Services of deploy/compose.yaml")
    with ExitStack() as stack:
        services = ComposeUnderTest(runtime, configuration, folder, report)
        stack.callback(services.close)
        began_s = time.monotonic()
        services.start()
        report.timed("all services: healthy", began_s)
        addresses = Addresses(
            proxy=services.url,
            service=f"http://127.0.0.1:{services.ports['waypost-1']}",
            operator=f"http://127.0.0.1:{free_port()}",
            receiver=f"http://127.0.0.1:{free_port()}",
        )
        began_s = time.monotonic()
        simulator = start_simulator(runtime, configuration, folder, addresses)
        report.timed("operator, `waypost simulator` in the image", began_s)
        received = folder / "callbacks.jsonl"
        host, port = addresses.receiver.removeprefix("http://").split(":")
        script = str(ROOT / "crashes" / "receiver.py")
        receiver = Child("receiver", [sys.executable, script, host, port, str(received)], {}, folder / "receiver.log")
        receiver.start()
        stack.callback(receiver.close)
        wait_until(lambda: is_open(addresses.receiver), "the receiver does not respond")
        began_s = time.monotonic()
        states = asyncio.run(Delivery(addresses, services.secret("admin_token"), received).deliver())
        report.timed("a message through the proxy", began_s, f"callbacks: {', '.join(states)}")
        began_s = time.monotonic()
        doctor = services.started.containers["waypost-1"].execute(["waypost", "doctor"])
        check(doctor.returncode == 0, f"`waypost doctor`: {doctor.stdout}{doctor.stderr}")
        report.timed("waypost doctor in waypost-1", began_s, "exit code 0")
        began_s = time.monotonic()
        services.stop()
        report.timed("all services: stopped in order", began_s)
        check(simulator.stop(30) == 0, "exit code of `waypost simulator`", simulator)


def start_simulator(runtime: Runtime, configuration: Configuration, folder: Path, addresses: Addresses) -> Container:
    """Start the simulator from the image, and return when it responds."""
    port = addresses.operator.rpartition(":")[2]
    container = runtime.start(
        Order(
            "simulator",
            ["simulator", "--data", configuration.volumes[0], "--port", port],
            {"WAYPOST_CONTROL_TOKEN": CONTROL_TOKEN},
            {configuration.volumes[0]: own_folder(folder / "simulator", configuration)},
        )
    )
    wait_until(lambda: is_open(addresses.operator), "the simulator does not respond", container)
    return container


def is_open(url: str) -> bool:
    """True if a server responds at the URL, whatever it says."""
    try:
        urlopen(url, timeout=5).close()
    except URLError as error:
        return hasattr(error, "code")
    except OSError:
        return False
    return True
