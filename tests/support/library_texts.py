"""Patterns of the texts of libraries, which no response, page or command shows."""

import re
from typing import Final

LIBRARY_TEXTS: Final = re.compile(
    r"Expected `|- at `\$|Object (missing required|contains unknown)|Invalid (enum value|base64 encoded|RFC3339|UUID)"
    r"|JSON is malformed|Input data was truncated|recursion depth|codec can't (de|en)code"  # msgspec, codecs
    r"|Expecting (value|property name|'.' delimiter)|\(char \d+\)|\(at (line \d|end of document)"  # json, tomllib
    r"|Did not find|boundary character|Maximum header"  # python_multipart
    r"|\[Errno|Unknown error -\d|Name or service not known|_ssl\.c|Cannot connect to host|Connect call failed"
    r"|Port out of range|does not appear to be an IPv4|sqlite3?\.|Traceback \(most"
)
"""Of msgspec, json, tomllib, the multipart parser, sockets, TLS, yarl, ipaddress and Python."""
