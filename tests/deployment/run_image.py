"""`make test-image`: builds the image without a registry of images, and runs it.

The base is a Debian root of mmdebstrap, the build is buildah's, from the Containerfile of this checkout. Containers run
with podman; where no container runtime can run, with `unshare` and `chroot`, by the configuration of the image. Needs
root, and the programs in `building.NEEDED`; nothing is skipped. Everything is in a temporary folder and in a mount
namespace of this process, which both end with it.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from crashes.processes import NotInTime
from tests.deployment.building import BASE, NEEDED, Failed, ImageStore, missing_programs
from tests.deployment.compose import check_compose
from tests.deployment.runtimes import select_runtime
from tests.deployment.single import Report, check_single

_IN_NAMESPACE = "WAYPOST_TEST_IN_MOUNT_NAMESPACE"


def main() -> int:
    """Build, run, check and print. The exit status is 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="make test-image", description=__doc__)
    parser.add_argument("--base", type=Path, help="archive of a Debian root with Python that was made earlier")
    parser.add_argument("--keep-base", type=Path, metavar="FILE", help="keep the archive of the root that is made")
    parser.add_argument("--runtime", choices=("any", "podman", "chroot"), default="any")
    arguments = parser.parse_args()
    if missing := missing_programs():
        packages = " ".join(sorted(set(NEEDED.values())))
        return fail("\n".join(["These programs are missing:", *missing, f"apt-get install {packages}"]))
    if os.geteuid() != 0:
        return fail("Only root can mount and change roots: sudo make test-image")
    if _IN_NAMESPACE not in os.environ:
        os.environ[_IN_NAMESPACE] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, "-m", "tests.deployment.run_image", *sys.argv[1:]])
    signal.signal(signal.SIGTERM, end)
    try:
        build_and_run(arguments, Report())
    except (Failed, NotInTime) as failure:
        return fail(str(failure))
    return 0


def end(_number: int, _frame: FrameType | None) -> None:
    """End this process, so that everything is closed."""
    sys.exit(1)


def fail(text: str) -> int:
    """Print why it failed, and return the exit status."""
    print(text, file=sys.stderr)
    return 1


def build_and_run(arguments: argparse.Namespace, report: Report) -> None:
    """Do all of it, and close what was opened in the opposite order."""
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="waypost-image-"))
        folder.chmod(0o711)  # for the users of the image and of PostgreSQL
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        store = ImageStore(folder)
        stack.callback(store.close)
        build(store, arguments, report)
        runtime, reasons = select_runtime(store, folder, arguments.runtime)
        stack.callback(runtime.close)
        print("Containers")
        for reason in reasons:
            report.line(f"not used: {reason}")
        report.line(f"used: {runtime.name}")
        configuration = store.configuration()
        check_single(runtime, configuration, folder, report)
        check_compose(runtime, configuration, folder, report)


def build(store: ImageStore, arguments: argparse.Namespace, report: Report) -> None:
    """Build both images, and print sizes and seconds."""
    print("Image")
    began_s = time.monotonic()
    store.make_base(arguments.base, arguments.keep_base)
    base = store.configuration(BASE).size
    how = "from the archive" if arguments.base else "by mmdebstrap"
    report.timed(f"base: Debian root with Python, {how}", began_s, f"{base / 1e6:.0f} MB")
    began_s = time.monotonic()
    store.build()
    report.timed("image: the Containerfile, by buildah", began_s, f"{store.configuration().size / 1e6:.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
