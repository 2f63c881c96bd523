"""`make test-old-pins`: runs tests of a project whose dependencies are two years old, with `pytest-waypost` beside them.

The new environment has the wheel of the plugin and no `waypost`: `waypost_command` names the one of this environment.
Prints the installed versions, the outcome, and how many modules pytest has rewritten for the plugin. Needs a package
index.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.docs.repository import ROOT
from tests.support.inner_pytest import run_pytest

PROJECT: Final = ROOT / "pytest-waypost"
COMMAND: Final = Path(sys.executable).with_name("waypost")
MAX_REWRITTEN: Final = 15
# fmt: off
PINS: Final = (  # of November 2024
    "fastapi==0.115.4",
    "sqlalchemy==2.0.36",
    "aiohttp==3.10.10",
    "pydantic==2.9.2",
    "uvicorn==0.32.0",
    "pytest==8.3.3",
)
# fmt: on

APPLICATION: Final = '''
"""A shop that stores each text and replies to it."""

import json

import aiohttp
from fastapi import FastAPI, Request
from sqlalchemy import String, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    phone: Mapped[str] = mapped_column(String, primary_key=True)
    text: Mapped[str]


def make_application(env, file):
    engine = create_engine(f"sqlite:///{file}")
    Base.metadata.create_all(engine)
    application = FastAPI()

    @application.post("/callbacks")
    async def receive(request: Request):
        body = await request.json()
        if body["type"] != "message":
            return
        phone = body["payload"]["source"]
        with Session(engine) as session:
            session.add(Order(phone=phone, text=body["payload"]["payload"]["text"]))
            session.commit()
        form = {
            "channel": "whatsapp", "source": env["SOURCE"], "src.name": env["SRC_NAME"], "destination": phone,
            "message": json.dumps({"type": "text", "text": "Your order is in."}),
        }
        async with aiohttp.ClientSession(headers={"apikey": env["API_KEY"]}) as http:
            async with http.post(f"{env['API_URL']}/wa/api/v1/msg", data=form) as response:
                response.raise_for_status()

    return application, engine
'''
TESTS: Final = """
import importlib.util
import socket
import sys
import threading

import uvicorn
from application import Order, make_application
from sqlalchemy.orm import Session


def test_text_is_stored_and_gets_a_reply(waypost, tmp_path):
    application, engine = make_application(waypost.env, tmp_path / "shop.db")
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, log_level="error"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    waypost.callbacks_to(f"http://127.0.0.1:{listener.getsockname()[1]}/callbacks")
    ann = waypost.phone("Ann")

    ann.write("Two pies, please")

    ann.wait_for_message("Your order is in.")
    assert waypost.wait_for_callback("text").was_delivered
    with Session(engine) as session:
        assert session.get(Order, ann.number).text == "Two pies, please"
    server.should_exit = True
    thread.join()
    listener.close()
    engine.dispose()


def test_rewritten_modules(waypost):
    assert importlib.util.find_spec("waypost") is None
    [rewriter] = [one for one in sys.meta_path if hasattr(one, "_rewritten_names")]
    rewritten = [name for name in rewriter._rewritten_names if "waypost" in name]
    print(f"REWRITTEN {len(rewritten)}")
"""


def main() -> int:
    """Install, run, print; the status is 1 if something fails."""
    with tempfile.TemporaryDirectory(prefix="waypost-old-pins-") as name:
        folder = Path(name)
        python = install(folder / "environment")
        (folder / "application.py").write_text(APPLICATION)
        (folder / "test_application.py").write_text(TESTS)
        (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = .\nwaypost_command = {COMMAND}\n")
        begun_s = time.monotonic()
        run = run_pytest(
            folder, folder / "report.xml", "-rP", python=python, variables={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""}
        )  # pytest rewrites the plugins that it finds by itself
        took_s = time.monotonic() - begun_s
    counts = [int(line.split()[1]) for line in run.output.splitlines() if line.startswith("REWRITTEN ")]
    is_passed = set(run.outcomes.values()) == {"passed"} and len(counts) == 1 and 0 < counts[0] <= MAX_REWRITTEN
    if not is_passed:
        print(run.output)
    print(f"{run.outcomes}, in {took_s:.1f} s")
    print(f"modules of the plugin that pytest has rewritten: {counts}, at most {MAX_REWRITTEN}")
    return int(not is_passed)


def install(folder: Path) -> str:
    """Make the environment, print what is in it, and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    project = shutil.copytree(PROJECT, folder / "pytest-waypost")  # building leaves files beside the source
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, "install", *PINS, str(project)], check=True)
    listed = subprocess.run([*pip, "freeze", "--exclude", "pytest-waypost"], check=True, capture_output=True, text=True)
    print(listed.stdout)
    return python


if __name__ == "__main__":
    sys.exit(main())
