"""The programs that verify signatures do so: each is run against callbacks signed as ours are."""

import json
import os
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from waypost.base.clock import machine_ms
from waypost.base.encryption import SecretBox
from waypost.console.callbacks.snippets import SNIPPET_LANGUAGES, SnippetLanguage, load_snippet
from waypost.wire.callbacks.signatures import key_text, signature_headers

SEALS = SecretBox("an instance key of forty characters, for tests")
BODY = '{"app":"orders","payload":{"text":"Grüße, 你好"}}'.encode()


@dataclass(frozen=True)
class Case:
    """One callback as it reaches a receiver, and whether it is to be believed."""

    name: str
    body: bytes
    headers: Mapping[str, str]
    key: str
    is_ours: bool


def cases() -> list[Case]:
    now_s = machine_ms() // 1000
    new, old = SEALS.callback_key(3, 2), SEALS.callback_key(3, 1)
    both = signature_headers("cb-1", now_s, BODY, [new, old])
    good = Case("the new key", BODY, both, key_text(new), True)
    return [
        good,
        replace(good, name="the old key, while both sign", key=key_text(old)),
        replace(good, name="another key", key=key_text(SEALS.callback_key(4, 1)), is_ours=False),
        replace(good, name="a changed body", body=BODY + b" ", is_ours=False),
        replace(good, name="another id", headers={**both, "webhook-id": "cb-2"}, is_ours=False),
        replace(
            good, name="an old callback", headers=signature_headers("cb-1", now_s - 3600, BODY, [new]), is_ours=False
        ),
        replace(good, name="no signature", headers={**both, "webhook-signature": ""}, is_ours=False),
        replace(good, name="no headers", headers={}, is_ours=False),
        replace(
            good,
            name="a signature of another kind",
            headers={**both, "webhook-signature": both["webhook-signature"].split()[0].replace("v1,", "v1a,")},
            is_ours=False,
        ),
    ]


# fmt: off
RUNS = {  # by language: the file of the program, what is written behind it, the second file, and how it is run
    "python": ("verify.py", "", "run.py", """
import base64, json, sys
from verify import verify
for case in json.load(sys.stdin):
    try:
        verify(base64.b64decode(case["body"]), case["headers"], case["key"])
        print("yes")
    except ValueError:
        print("no")
""", [sys.executable, "run.py"]),
    "javascript": ("verify.mjs", "", "run.mjs", """
import { readFileSync } from "node:fs";
import { verify } from "./verify.mjs";
for (const one of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    verify(Buffer.from(one.body, "base64"), one.headers, one.key);
    console.log("yes");
  } catch { console.log("no"); }
}
""", ["node", "run.mjs"]),
    "php": ("verify.php", "", "run.php", """<?php
require 'verify.php';
foreach (json_decode(stream_get_contents(STDIN), true) as $one) {
    try {
        verify(base64_decode($one['body']), $one['headers'], $one['key']);
        echo "yes\\n";
    } catch (RuntimeException) { echo "no\\n"; }
}
""", ["php", "run.php"]),
    "java": ("Verify.java", """
final class Run {
    public static void main(String[] lines) throws Exception {
        for (int at = 0; at < lines.length; at += 5) {
            try {
                Verify.verify(Base64.getDecoder().decode(lines[at]), lines[at + 1], lines[at + 2], lines[at + 3], lines[at + 4]);
                System.out.println("yes");
            } catch (SecurityException no) { System.out.println("no"); }
        }
    }
}
""", "unused.txt", "", ["java", "-cp", ".", "Run"]),
    "go": ("verify.go", "", "verify_test.go", """package callbacks

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
)

func TestRun(t *testing.T) {
	var cases []struct {
		Body    string
		Headers map[string]string
		Key     string
	}
	given, err := os.ReadFile("cases.json") // go test passes no input on
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(given, &cases); err != nil {
		t.Fatal(err)
	}
	for _, one := range cases {
		body, err := base64.StdEncoding.DecodeString(one.Body)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		for name, text := range one.Headers {
			header.Set(name, text)
		}
		if Verify(body, header, one.Key) == nil {
			fmt.Println("yes")
		} else {
			fmt.Println("no")
		}
	}
}
""", ["go", "test", "-count=1", "-v", "-run", "TestRun", "."]),
}
PACKAGES = {"javascript": "nodejs", "php": "php-cli", "java": "default-jdk-headless", "go": "golang-go"}
GO_ALONE = {  # nothing is fetched, neither modules nor another Go; and no compiler of C is asked for
    "GO111MODULE": "on", "GOFLAGS": "", "GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local",
    "GOWORK": "off", "CGO_ENABLED": "0",
}
# fmt: on


@pytest.mark.timeout(240)  # Go builds its library of HTTP the first time, on a machine that does much else
@pytest.mark.parametrize("language", SNIPPET_LANGUAGES, ids=lambda one: one.name)
def test_program_believes_what_is_ours_and_nothing_else(language: SnippetLanguage, tmp_path: Path) -> None:
    file, behind, second, run, command = RUNS[language.name]
    _need("javac" if language.name == "java" else command[0], language)
    given = cases()
    told = json.dumps([_told(case) for case in given])
    (tmp_path / file).write_text(load_snippet(language) + "\n" + behind, "utf-8")
    (tmp_path / second).write_text(run, "utf-8")
    words: list[str] = []
    if language.name == "java":
        subprocess.run(["javac", file], cwd=tmp_path, check=True, capture_output=True)
        words = [word for case in given for word in _words(case)]
    if language.name == "go":
        (tmp_path / "go.mod").write_text("module callbacks\n\ngo 1.18\n", "utf-8")
        (tmp_path / "cases.json").write_text(told, "utf-8")

    done = subprocess.run(
        [*command, *words],
        cwd=tmp_path,
        env=_surroundings(tmp_path),
        input=told,
        capture_output=True,
        text=True,
        check=False,
    )

    said = [line for line in done.stdout.splitlines() if line in ("yes", "no")]
    assert dict(zip((case.name for case in given), said, strict=False)) == {
        case.name: "yes" if case.is_ours else "no" for case in given
    }, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


def _need(program: str, language: SnippetLanguage) -> None:
    """Skip where a language is not there; where `.ci/run` should have installed it, fail."""
    if shutil.which(program) is not None:
        return
    said = f"{program} is not there; install Debian's {PACKAGES[language.name]}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{said}, as .ci/run does")
    pytest.skip(said)


def _surroundings(folder: Path) -> dict[str, str]:
    """The environment of a program; what Go has built is kept where it always is, if there is such a place."""
    found = {**os.environ, **GO_ALONE}
    if not {"GOCACHE", "XDG_CACHE_HOME", "HOME"} & found.keys():
        found["GOCACHE"] = str(folder / "built")
    return found


def _told(case: Case) -> dict[str, object]:
    return {"body": b64encode(case.body).decode(), "headers": dict(case.headers), "key": case.key}


def _words(case: Case) -> list[str]:
    told = _told(case)
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    return [str(told["body"]), *(case.headers.get(name, "") for name in names), case.key]
