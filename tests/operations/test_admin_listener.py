"""`admin_port`: the admin API and the metrics have their own listener, and the public listener has neither."""

import asyncio
import os
import sys
from pathlib import Path

import aiohttp

from crashes.processes import SOURCES, Child, free_port
from tests.support.polling import poll_until

KEY, TOKEN = "long-key" * 8, "admin-token" * 4


async def get_status(http: aiohttp.ClientSession, url: str) -> int:
    try:
        async with http.get(url, headers={"Authorization": f"Bearer {TOKEN}"}) as response:
            await response.read()
            return response.status
    except aiohttp.ClientError:
        return 0


async def test_each_listener_serves_only_its_own_paths(tmp_path: Path) -> None:
    port, admin_port = free_port(), free_port()
    child = Child(
        "serve",
        [sys.executable, "-m", "waypost", "serve", "--data", str(tmp_path / "data"), "--port", str(port)],
        {
            "WAYPOST_SECRET_KEY": KEY, "WAYPOST_ADMIN_TOKEN": TOKEN,
            "WAYPOST_ADMIN_PORT": str(admin_port),
        },
        tmp_path / "log",
    )  # fmt: skip
    child.start()
    try:
        async with aiohttp.ClientSession() as http:
            public, admin = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin_port}"

            async def health() -> int:
                return await get_status(http, f"{public}/healthz")

            await poll_until(health, lambda status: status == 200, within_s=30)
            for path, on_public, on_admin in (
                ("/admin/apps",          404, 200),
                ("/admin/apps/",         404, 200),
                ("/admin",               404, 404),
                ("/%61dmin/apps",        404, 200),
                ("/metrics",             404, 200),
                ("/readyz",              200, 200),
                ("/healthz",             200, 200),
                ("/sign-in",             200, 404),
                ("/openapi.json",        200, 404),
                ("/partner/app/x/token", 403, 404),
            ):  # fmt: skip
                assert await get_status(http, public + path) == on_public, path
                assert await get_status(http, admin + path) == on_admin, path
        listed = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "waypost", "audit", "--json",
            env={
                **os.environ,
                "PYTHONPATH": str(SOURCES),
                "WAYPOST_ADMIN_TOKEN": TOKEN, "WAYPOST_ADMIN_PORT": str(admin_port),
                "WAYPOST_PORT": str(port),
            },
            stdout=asyncio.subprocess.PIPE, cwd=tmp_path,
        )  # fmt: skip
        output, _ = await listed.communicate()
        assert listed.returncode == 0
        assert b'"entries": []' in output
    finally:
        child.kill()
