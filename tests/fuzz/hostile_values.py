"""Hostile values: texts, files, bodies and path segments that parsers, stores, clocks and other programs may fail on."""

from random import Random
from typing import Final

from waypost.assembly.dev import demo

LONG_NUMBER: Final = "9" * 4500  # more digits than Python converts to a number
LONE_SURROGATE: Final = "\ud800"

# fmt: off
HOSTILE_TEXTS: Final = (
    # characters
    "", " ", "\0", "a\0b", LONE_SURROGATE, f"a{LONE_SURROGATE}b", "\udfff", "\u202e\u200b", "\ufeff", "\r\n\r\n", "\x1b[2J", "é😀👩‍👩‍👧‍👧", "İı",
    "<script>alert(1)</script>", "{{1}}", "{{ 7*7 }}", "{% raw %}", "%s%n%(a)s", "%", "%_" * 3000, "..", "../../etc/passwd",
    "/", "//", "\\", "'", '"', "';--", "$(id)", "x" * 1025, "x" * 70_000, "😀" * 5000, "a\n" * 5000,
    # numbers
    "0", "-1", "-0", "1.5", "1e9", "1e400", "-1e400", "nan", "inf", "-Infinity", "1_000", "٣", "²", "½", "0x10", "+1", "1,5",
    "2147483648", "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "18446744073709551616", "1" + "0" * 40, "0." + "0" * 400 + "1", LONG_NUMBER, "-" + LONG_NUMBER, f"1.{LONG_NUMBER}",
    # times
    "0001-01-01T00:00", "0001-01-01T00:00+23:59", "9999-12-31T23:59-23:59", "9999-12-31T23:59:59.999999", "2026-02-30T00:00",
    "2026-11-22", "20261122T0102", "2026-W47-7", "1969-12-31T23:59", "253402300800000", "99999999999999999",
    # JSON
    "null", "true", "[]", "{}", '""', "1", "[1]", "[null]", "[[]]", "[{}]", '{"a":', "NaN", "[" * 5000, '{"a":' * 2000,
    f"[{LONG_NUMBER}]", f'{{"a":{LONG_NUMBER}}}', '["\\ud800"]', '{"a":"\\u0000"}', '{"a":1,"a":2}', "[1e999]", '{"\\ud800":1}',
    '[{"on":"message","do":"reply","text":"\\ud800"}]', '[{"on":"message","do":"tap","index":99999999999999999999}]',
    '[{"on":"message","do":"reply","text":"a","after_ms":-1}]', '[{"on":7,"do":null}]', '{"on":"call","what":{"error":1e999}}',
    '{"on":"call","call":"messages.send","what":{"error":"a"},"when":{"next":-1}}', '{"on":"webhook","what":{"drop":"x"}}',
    '{"catalog_id":1,"product_items":[{}]}', '{"product_items":[{"quantity":-1,"item_price":1e999}]}', '{"flow_token":[]}',
    # URLs, addresses and names
    "http://", "http://[", "http://[::1]:99999/", "http://a:b@127.0.0.1:9/", "https://\u2100.test/", "javascript:alert(1)", "//evil.test",
    "http://127.0.0.1:9/" + "a" * 4000, "http://xn--/", "http://" + "a." * 200, "http://127.0.0.1:9/\0", "file:///etc/passwd",
    "a@b", "@", "+", "+1 555", "15550002001", "15550002002,15550002003", "1" * 21, "wamid.", "wamid.HBgL", "01990000-0000-7000-8000-0000000000ff",
    "user_id", "US.1", "on", "always", "every", "*", "none", "custom", demo.SOURCE, demo.DESTINATION, demo.APP_ID, demo.TEMPLATE_ID,
    "Bad: header\r\nX-Evil: 1", "X-Ok: 1\nX-Ok: 2", ": ", "Host: evil.test", "X-\u00e9: \u00e9", "button+0", "card+0", "remove-99", "-button-1",
)
HOSTILE_FILES: Final = (  # name, type, and bytes
    ("a.png",                  "image/png",                      b""),
    ("a.png",                  "image/png",                      b"no picture"),
    ("a.png",                  "text/html",                      b"<script>alert(1)</script>"),
    ("",                       "application/octet-stream",       b"1"),
    ("a" * 300 + ".png",       "image/png",                      b"1"),
    ("../../a\\b:c.exe",       "application/x-msdownload",       b"MZ\x90\0" + bytes(60)),
    ("a\u202egnp.exe",         "video/mp4",                      b"\0\0\0\x18ftypisom" + bytes(8)),
    ("a.bin",                  "a" * 400 + "/b",                 bytes(range(256))),
    ("a.bin",                  "",                               b"%PDF-1.4"),
    ("a.webp",                 "image/webp",                     b"RIFF\xff\xff\xff\xffWEBP"),
    ("a.txt",                  "text/plain; charset=\u00e9",     "é".encode("utf-16")),
    (f"a{LONE_SURROGATE}.txt",           "text/plain",                     b"1"),
    ("a\0.txt",                "text/plain",                     b"1"),
)
MALFORMED_BODIES: Final = (  # Content-Type, and bytes that do not match it
    ("application/json",                                       b'{"csrf": 1}'),
    ("application/json",                                       b"["  * 3000),
    ("text/plain",                                             b"text=Hello"),
    ("multipart/form-data",                                    b"--x--"),
    ("multipart/form-data; boundary=x",                        b""),
    ("multipart/form-data; boundary=x",                        b"--x\r\n\r\n"),
    ("multipart/form-data; boundary=" + "x" * 300,             b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--"),
    ("multipart/form-data; boundary=x; charset=unicode_escape", b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\n\\ud800\r\n--x--\r\n'),
    ("multipart/form-data; boundary=x; charset=utf-7",         b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\n+2AA-\r\n--x--\r\n'),
    ("multipart/form-data; boundary=x; charset=idna",          b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\n\xff\r\n--x--\r\n'),
    ("application/x-www-form-urlencoded",                      b"text=%ED%A0%80&name=%FF&to=%"),
    ("application/x-www-form-urlencoded",                      b"&".join(b"a%d=1" % at for at in range(2000))),
    ("application/x-www-form-urlencoded; charset=utf-16",      b"\xff\xfet\0e\0x\0t\0"),
    ("",                                                       b"text=Hello"),
)
HOSTILE_SEGMENTS: Final = (  # replace a segment of a path; already quoted
    "0", "-1", "1.5", "%00", "a%00b", "%ED%A0%80", "%FF", "%20", "%2F", "%2E%2E", "%", "%25_", "%F0%9F%98%80", "%D9%A3", "nan",
    "9223372036854775807", "9223372036854775808", LONG_NUMBER[:4400], "a" * 3000, "'", "%22%3E%3Cb%3E", "new", "live", "null", "wamid.HBgL",
    "01990000-0000-7000-8000-0000000000ff", "15550002099", "%7B%7D", "%0D%0AX-Evil:1", "~", "*", "call", "webhook", "error",
)
# fmt: on


def draw_hostile_text(chance: Random) -> str:
    """Return a hostile text, two of them joined, or random characters."""
    match chance.randrange(8):
        case 0:
            return "".join(chr(chance.randrange(0x110000)) for _ in range(chance.randrange(1, 40)))
        case 1:
            return (chance.choice(HOSTILE_TEXTS) + chance.choice(HOSTILE_TEXTS))[:100_000]
        case _:
            return chance.choice(HOSTILE_TEXTS)
