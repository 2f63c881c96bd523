"""Arrays for PostgreSQL in its binary format: one value of a statement for a whole column of rows.

psycopg makes an array from a list member by member in Python, and from text that the server has to parse.
Here the bytes of the wire format are made at once, several times faster.

Source: postgresql.org, "array_send" (src/backend/utils/adt/arrayfuncs.c) for the layout: dimensions, a flag for
NULL, the type of the members, length and lower bound of the dimension; then each member with its size.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

_HEADER: Final = struct.Struct("!iiIii").pack
_EMPTY: Final = struct.Struct("!iiI").pack
_SIZE: Final = struct.Struct("!i").pack
_NULL: Final = _SIZE(-1)
_INT2: Final = struct.Struct("!ih").pack
_INT4: Final = struct.Struct("!ii").pack
_INT8: Final = struct.Struct("!iq").pack
_BOOL: Final = {True: _SIZE(1) + b"\1", False: _SIZE(1) + b"\0"}


def _pack_text(value: str) -> bytes:
    encoded = value.encode()
    return _SIZE(len(encoded)) + encoded


def _pack_bytes(value: bytes) -> bytes:
    return _SIZE(len(value)) + value


class ArrayType:
    """A type of arrays.

    Args:
        name: of the members' type, in SQL.
        member_oid: of the members' type. Source: postgresql.org, src/include/catalog/pg_type.dat.
        array_oid: of the array type.
        pack: encodes one member with its size.
    """

    def __init__(self, name: str, member_oid: int, array_oid: int, pack: Callable[[Any], bytes]) -> None:
        self.name = name
        self.array_oid = array_oid
        self._member_oid = member_oid
        self._pack = pack

    def encode(self, values: Sequence[Any]) -> bytes:
        """Return an array as a parameter of a statement."""
        pack = self._pack
        if None in values:
            members = [_NULL if value is None else pack(value) for value in values]
            return _HEADER(1, 1, self._member_oid, len(members), 1) + b"".join(members)
        if not values:
            return _EMPTY(0, 0, self._member_oid)
        return _HEADER(1, 0, self._member_oid, len(values), 1) + b"".join(map(pack, values))


# fmt: off
ARRAY_TYPES: Final = {  # by the name of the members' type
    array_type.name: array_type
    for array_type in (
        #         name     member  array
        ArrayType("text",  25,     1009,   _pack_text),
        ArrayType("bytea", 17,     1001,  _pack_bytes),
        ArrayType("int8",  20,     1016,   lambda value: _INT8(8, value)),
        ArrayType("int4",  23,     1007,   lambda value: _INT4(4, value)),
        ArrayType("int2",  21,     1005,   lambda value: _INT2(2, value)),
        ArrayType("bool",  16,     1000,   lambda value: _BOOL[bool(value)]),
    )
}
# fmt: on
