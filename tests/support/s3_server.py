"""An S3-compatible server of one test run: moto's, over real HTTP."""

import contextlib
import logging
import re
from collections.abc import Generator
from dataclasses import dataclass
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer

ACCESS_KEY_ID = "waypost-test"
SECRET_KEY = "the-secret-of-the-bucket"
REGION = "us-east-1"
BUCKET = "waypost-media"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server with one bucket."""

    endpoint: str

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a service that uses it."""
        return {
            "media_url": f"s3://{BUCKET}/media",
            "media_endpoint": self.endpoint,
            "media_region": REGION,
            "media_access_key_id": ACCESS_KEY_ID,
            "media_secret_key": SECRET_KEY,
        }

    def object_names(self) -> list[str]:
        """Return the names of all objects, in order."""
        with urlopen(f"{self.endpoint}/{BUCKET}?list-type=2") as response:
            return sorted(re.findall("<Key>([^<]*)</Key>", response.read().decode()))


@contextlib.contextmanager
def running_s3_server() -> Generator[S3Server]:
    """Run a server with an empty bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        urlopen(Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
        yield S3Server(endpoint)
    finally:
        server.stop()
