"""What the service logs as an error is a defect, unless its store is away."""

import json

import pytest

from simulation.defects import DefectRecords
from waypost.base.telemetry.logs import LossyStream

LONG = "  File\n" * 1000


@pytest.mark.parametrize(
    ("exception", "found"),
    [
        (f"{LONG}KeyError: 'id'", ["the service logged 'defect'"]),
        (f"{LONG}waypost.store.contract.StoreUnavailable: the store cannot be reached", []),
    ],
)
async def test_long_record_is_read_whole(exception: str, found: list[str]) -> None:
    records = DefectRecords()
    stream = LossyStream(records)

    for _ in range(2):
        stream.write(json.dumps({"event": "defect", "exception": exception}) + "\n")

    assert [defect.splitlines()[0] for defect in records.defects] == 2 * found
    assert stream.lost == 0
