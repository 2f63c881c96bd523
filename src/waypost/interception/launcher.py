"""A script of its own, without anything of ours: gives itself a name map, then becomes the program.

It runs as `python -I -S launcher.py DESCRIPTOR COMMAND…`. The descriptor is a socket: one JSON object in, the outcome
back (with the descriptor by which its connections are led here), the environment in. It writes nothing else. It starts
with each program, so it imports no module that takes long to load.
"""

import ctypes
import errno
import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module of types takes long to load
    from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_PDEATHSIG = 1
SECCOMP_SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5
SECCOMP_RET_USER_NOTIF, SECCOMP_RET_ALLOW = 0x7FC00000, 0x7FFF0000
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER_OFFSET, ARCHITECTURE_OFFSET = 0, 4
MACHINES = {  # machine: its name for filters, and the numbers of seccomp and connect
    "x86_64": (0xC000003E, 317, 42),
    "aarch64": (0xC00000B7, 277, 203),
}
EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 126, 127
_MEANINGS = {errno.ENOSPC: "user.max_user_namespaces or user.max_mnt_namespaces allows no further one"}
"""Of errors whose usual text is about something else. Source: page "Kernel interfaces"."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def main() -> None:
    """Run."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    command = sys.argv[2:]
    received = control.makefile("r", encoding="utf-8")
    task = json.loads(received.readline())
    try:
        descriptors = [_map_names(task)] if task["binds"] else []
    except OSError as error:
        control.sendall(json.dumps({"error": error.strerror or str(error)}).encode())
        return
    socket.send_fds(control, [b"{}"], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    environment = json.loads(received.readline())
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if task["umask"] is not None:
        os.umask(task["umask"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and the program would inherit
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, task["blocked_signals"])
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606  the user's own command
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        sys.stderr.write(f"waypost: intercept: {command[0]!r} cannot be run: {error.strerror}\n")
        sys.exit(EXIT_NOT_FOUND if is_missing else EXIT_NOT_EXECUTABLE)


def _map_names(task: "dict[str, Any]") -> int:
    """Enter a mount namespace with our files, and return the descriptor that hears of each connection.

    Raises:
        OSError: this machine does not allow it, or the names do not lead to us.
    """
    if os.uname().machine not in MACHINES:
        raise OSError(0, f"there is no name map on {os.uname().machine}")
    if _libc.unshare(CLONE_NEWNS) != 0:  # without the right to do so, in a user namespace
        user, group = os.getuid(), os.getgid()
        _check(_libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "no user namespace")
        if os.access("/proc/self/setgroups", os.F_OK):
            _write("/proc/self/setgroups", "deny")
        try:
            _write("/proc/self/uid_map", f"{user} {user} 1")
            _write("/proc/self/gid_map", f"{group} {group} 1")
        except OSError as error:  # root without the capability SETFCAP, or a profile that allows empty namespaces only
            raise OSError(error.errno, f"user {user} cannot be mapped in a namespace ({error.strerror})") from error
    _check(_libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "no private mounts")
    for source, place in task["binds"]:
        _check(_libc.mount(source.encode(), place.encode(), None, MS_BIND, None), f"{place} cannot be replaced")
    found = {entry[4][0] for entry in socket.getaddrinfo(task["host"], 443, socket.AF_INET, socket.SOCK_STREAM)}
    if found != {task["address"]}:
        raise OSError(0, f"{task['host']} is still {', '.join(sorted(map(str, found)))}")
    return _install_connection_filter()


def _install_connection_filter() -> int:
    """Install a filter by which another process decides each `connect`, and return its descriptor."""
    architecture, seccomp, connect = MACHINES[os.uname().machine]
    instructions = (
        (LOAD_WORD, 0, 0, ARCHITECTURE_OFFSET),
        (JUMP_IF_EQUAL, 0, 3, architecture),
        (LOAD_WORD, 0, 0, NUMBER_OFFSET),
        (JUMP_IF_EQUAL, 0, 1, connect),
        (RETURN, 0, 0, SECCOMP_RET_USER_NOTIF),
        (RETURN, 0, 0, SECCOMP_RET_ALLOW),
    )
    listed = (_Instruction * len(instructions))(*(_Instruction(*one) for one in instructions))
    program = ctypes.byref(_Program(len(instructions), listed))
    for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER):  # the first since Linux 5.19: no signal interrupts
        descriptor = _libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, flags, program)
        if descriptor >= 0:
            return descriptor
    return _check(descriptor, "no filter of connections")


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _check(result: int, text: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{text} ({_MEANINGS.get(error) or os.strerror(error)})")
    return result


if __name__ == "__main__":
    main()
