"""The proofs accept traces in which the order is right, and report violations in the others."""

from typing import Final

from crashes.proofs import prove_client, prove_server, prove_sqlite

ID: Final = "01a20308-b1a9-7425-99e7-b40dfba2bfed"
WAL: Final = "4</store/waypost.db-wal>"
PAGE: Final = f'20 pwrite64({WAL}, "\\0\\5x{ID}pending", 4096, 56) = 4096'
FRAME: Final = f'20 pwrite64({WAL}, "\\0\\0\\0\\7\\0\\0\\0\\0abcdefghijklmnop", 24, 32) = 24'
COMMIT_FRAME: Final = f'20 pwrite64({WAL}, "\\0\\0\\0\\7\\0\\0\\0\\tabcdefghijklmnop", 24, 32) = 24'
FLUSH: Final = f"20 fdatasync({WAL}) = 0"
HEAD: Final = '10 write(9<socket:[1]>, "HTTP/1.1 200 OK\\r\\n\\r\\n", 19) = 19'
RESPONSE: Final = f'10 write(9<socket:[1]>, "{{\\"status\\":\\"submitted\\",\\"messageId\\":\\"{ID}\\"}}", 73) = 73'
WAL_SEGMENT: Final = "6</data/pg_wal/000000010000000000000001>"
ROW: Final = f'10 sendto(7<socket:[2]>, "d\\0\\0\\0\\\\{ID}\\0", 90, 0, NULL, 0) = 90'
COMMIT: Final = '10 sendto(7<socket:[2]>, "Q\\0\\0\\0\\vCOMMIT\\0", 12, 0, NULL, 0) = 12'
CONFIRMATION: Final = '10 recvfrom(7<socket:[2]>, "C\\0\\0\\0\\vCOMMIT\\0Z\\0\\0\\0\\5I", 16384, 0, NULL, NULL) = 18'
ALONE: Final = (
    f'10 sendto(7<socket:[2]>, "B\\0\\0\\0P\\0waypost_alone_0\\0x{ID}E\\0\\0\\0\\tS\\0\\0\\0\\4", 90, 0, NULL, 0) = 90'
)
INSERTED: Final = (
    '10 recvfrom(7<socket:[2]>, "2\\0\\0\\0\\4C\\0\\0\\0\\17INSERT 0 1\\0Z\\0\\0\\0\\5I", 16384, 0, NULL, NULL) = 27'
)
ALONE_READ: Final = ALONE.replace("10 sendto(7<socket:[2]>", "30 recvfrom(8<socket:[3]>").replace(
    "NULL, 0)", "NULL, NULL)"
)
INSERTED_SENT: Final = INSERTED.replace("10 recvfrom(7<socket:[2]>", "30 sendto(8<socket:[3]>").replace(
    "NULL, NULL)", "NULL, 0)"
)
PIPELINE: Final = (
    f'10 sendto(7<socket:[2]>, "B\\0\\0\\0P\\0waypost_3\\0x{ID}E\\0\\0\\0\\tB\\0\\0\\0\\33\\0waypost_commit\\0'
    'E\\0\\0\\0\\tS\\0\\0\\0\\4", 120, 0, NULL, 0) = 120'
)
PIPELINE_READ: Final = PIPELINE.replace("10 sendto(7<socket:[2]>", "30 recvfrom(8<socket:[3]>")
ROW_READ: Final = f'30 recvfrom(8<socket:[3]>, "d\\0\\0\\0\\\\{ID}\\0", 8192, 0, NULL, NULL) = 90'
COMMIT_READ: Final = '30 recvfrom(8<socket:[3]>, "Q\\0\\0\\0\\vCOMMIT\\0", 8192, 0, NULL, NULL) = 12'
CONFIRMATION_SENT: Final = '30 sendto(8<socket:[3]>, "C\\0\\0\\0\\vCOMMIT\\0Z\\0\\0\\0\\5I", 18, 0, NULL, 0) = 18'


def test_response_after_the_flush_of_its_commit_is_proven() -> None:
    proof = prove_sqlite([FRAME, PAGE, COMMIT_FRAME, PAGE, FLUSH, HEAD, RESPONSE], "waypost.db-wal")

    assert (proof.acknowledged, proof.flushes, proof.violations) == (1, 1, [])


def test_response_before_the_flush_is_a_violation() -> None:
    proof = prove_sqlite([COMMIT_FRAME, PAGE, HEAD, RESPONSE, FLUSH], "waypost.db-wal")

    assert proof.violations == [f"{ID} was acknowledged before its flush"]


def test_head_of_a_response_before_the_flush_is_a_violation() -> None:
    proof = prove_sqlite([COMMIT_FRAME, PAGE, HEAD, FLUSH, RESPONSE], "waypost.db-wal")

    assert len(proof.violations) == 1


def test_flush_without_the_frame_that_commits_proves_nothing() -> None:
    proof = prove_sqlite([FRAME, PAGE, FLUSH, HEAD, RESPONSE], "waypost.db-wal")

    assert len(proof.violations) == 1


def test_flush_that_began_before_the_page_was_written_proves_nothing() -> None:
    began, ended = f"21 fdatasync({WAL} <unfinished ...>", "21 <... fdatasync resumed>) = 0"

    proof = prove_sqlite([began, COMMIT_FRAME, PAGE, ended, HEAD, RESPONSE], "waypost.db-wal")

    assert len(proof.violations) == 1


def test_flush_that_failed_proves_nothing() -> None:
    failed = f"20 fdatasync({WAL}) = -1 EIO (Input/output error)"

    proof = prove_sqlite([COMMIT_FRAME, PAGE, failed, HEAD, RESPONSE], "waypost.db-wal")

    assert (proof.flushes, len(proof.violations)) == (0, 1)


def test_response_after_the_commit_confirmation_is_proven_and_before_it_is_a_violation() -> None:
    right = prove_client([ROW, COMMIT, CONFIRMATION, HEAD, RESPONSE])
    wrong = prove_client([ROW, COMMIT, HEAD, RESPONSE, CONFIRMATION])

    assert (right.acknowledged, right.violations) == (1, [])
    assert len(wrong.violations) == 1


def test_id_that_is_split_across_two_writes_is_found() -> None:
    writes = [
        f'10 sendto(7<socket:[2]>, "d\\0x{ID[:20]}", 22, 0, NULL, 0) = 22',
        f'10 sendto(7<socket:[2]>, "{ID[20:]}\\0", 17, 0, NULL, 0) = 17',
    ]

    assert prove_client([*writes, COMMIT, CONFIRMATION, HEAD, RESPONSE]).violations == []


def test_commit_confirmation_after_a_flush_by_any_process_is_proven() -> None:
    flush = f"31 fdatasync({WAL_SEGMENT}) = 0"

    right = prove_server([ROW_READ, COMMIT_READ, flush, CONFIRMATION_SENT], "/pg_wal/")
    wrong = prove_server([ROW_READ, flush, COMMIT_READ, CONFIRMATION_SENT], "/pg_wal/")

    assert (right.acknowledged, right.flushes, right.violations) == (1, 1, [])
    assert len(wrong.violations) == 1


def test_statement_that_is_a_transaction_of_its_own_is_a_commit() -> None:
    client = prove_client([ALONE, INSERTED, HEAD, RESPONSE])
    server = prove_server([ALONE_READ, FLUSH.replace(WAL, WAL_SEGMENT), INSERTED_SENT], "pg_wal")

    assert (client.acknowledged, client.flushes, client.violations) == (1, 1, [])
    assert (server.acknowledged, server.violations) == (1, [])


def test_statement_that_is_a_transaction_of_its_own_and_is_not_flushed_is_a_violation() -> None:
    client = prove_client([ALONE, HEAD, RESPONSE, INSERTED])
    server = prove_server([ALONE_READ, INSERTED_SENT, FLUSH.replace(WAL, WAL_SEGMENT)], "pg_wal")

    assert len(client.violations) == 1
    assert len(server.violations) == 1


def test_pipeline_with_a_commit_at_its_end_is_a_commit() -> None:
    flush = FLUSH.replace(WAL, WAL_SEGMENT)

    client = prove_client([PIPELINE, CONFIRMATION, HEAD, RESPONSE])
    server = prove_server([PIPELINE_READ, flush, CONFIRMATION_SENT], "pg_wal")
    acknowledged_early = prove_client([PIPELINE, HEAD, RESPONSE, CONFIRMATION])
    confirmed_early = prove_server([PIPELINE_READ, CONFIRMATION_SENT, flush], "pg_wal")

    assert (client.acknowledged, client.flushes, client.violations) == (1, 1, [])
    assert (server.acknowledged, server.violations) == (1, [])
    assert (len(acknowledged_early.violations), len(confirmed_early.violations)) == (1, 1)


def test_statement_in_a_transaction_is_no_commit() -> None:
    statement = ALONE.replace("waypost_alone_0", "waypost_0")

    proof = prove_client([statement, INSERTED, HEAD, RESPONSE])

    assert len(proof.violations) == 1


def test_commit_that_is_split_across_two_reads_is_found() -> None:
    first, second = PIPELINE_READ.split("post_commit")
    reads = [f'{first}", 90, 0, NULL, NULL) = 90', f'30 recvfrom(8<socket:[3]>, "post_commit{second}']

    right = prove_server([*reads, FLUSH.replace(WAL, WAL_SEGMENT), CONFIRMATION_SENT], "pg_wal")
    wrong = prove_server([*reads, CONFIRMATION_SENT], "pg_wal")

    assert (right.acknowledged, right.violations) == (1, [])
    assert len(wrong.violations) == 1
