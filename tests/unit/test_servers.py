"""Sockets of our servers: bound before anything else is opened, and quick to answer."""

import socket

import pytest

from waypost.assembly.servers import PortInUse, bind, port_of


def test_answers_do_not_wait_for_an_acknowledgement_of_their_first_half() -> None:
    with bind("127.0.0.1", 0, option="--port") as bound:
        with socket.create_connection(bound.getsockname()):
            connection, _ = bound.accept()

        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_port_that_is_taken_is_told_with_the_option_that_sets_it() -> None:
    with (
        bind("127.0.0.1", 0, option="--port") as bound,
        pytest.raises(PortInUse, match="--simulator-port"),
    ):
        bind("127.0.0.1", port_of(bound), option="--simulator-port")
