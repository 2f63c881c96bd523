"""The snippets that verify signatures: each is run against callbacks signed as by the service."""

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

SECRET_BOX = SecretBox("an instance key of forty characters, for tests")
BODY = '{"app":"orders","payload":{"text":"Grüße, 你好"}}'.encode()


@dataclass(frozen=True)
class Case:
    """A callback as it reaches a receiver, and whether it is genuine."""

    name: str
    body: bytes
    headers: Mapping[str, str]
    key: str
    is_genuine: bool


def make_cases() -> list[Case]:
    now_s = machine_ms() // 1000
    new, old = SECRET_BOX.callback_key(3, 2), SECRET_BOX.callback_key(3, 1)
    both = signature_headers("cb-1", now_s, BODY, [new, old])
    genuine = Case("the new key", BODY, both, key_text(new), True)
    return [
        genuine,
        replace(genuine, name="the old key, while both sign", key=key_text(old)),
        replace(genuine, name="another key", key=key_text(SECRET_BOX.callback_key(4, 1)), is_genuine=False),
        replace(genuine, name="a changed body", body=BODY + b" ", is_genuine=False),
        replace(genuine, name="another id", headers={**both, "webhook-id": "cb-2"}, is_genuine=False),
        replace(
            genuine,
            name="an old callback",
            headers=signature_headers("cb-1", now_s - 3600, BODY, [new]),
            is_genuine=False,
        ),
        replace(genuine, name="no signature", headers={**both, "webhook-signature": ""}, is_genuine=False),
        replace(genuine, name="no headers", headers={}, is_genuine=False),
        replace(
            genuine,
            name="a signature of another kind",
            headers={**both, "webhook-signature": both["webhook-signature"].split()[0].replace("v1,", "v1a,")},
            is_genuine=False,
        ),
    ]


# fmt: off
RUNS = {  # by language: file of the snippet, code appended to it, file and code of the runner, command
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
GO_OFFLINE = {  # downloads nothing, neither modules nor another Go, and needs no C compiler
    "GO111MODULE": "on", "GOFLAGS": "", "GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local",
    "GOWORK": "off", "CGO_ENABLED": "0",
}
# fmt: on


@pytest.mark.timeout(240)  # the first time, Go compiles its HTTP library, perhaps on a busy machine
@pytest.mark.parametrize("language", SNIPPET_LANGUAGES, ids=lambda language: language.name)
def test_snippet_accepts_only_genuine_callbacks(language: SnippetLanguage, tmp_path: Path) -> None:
    file, suffix, runner_file, runner, command = RUNS[language.name]
    _require("javac" if language.name == "java" else command[0], language)
    cases = make_cases()
    cases_json = json.dumps([_case_to_json(case) for case in cases])
    (tmp_path / file).write_text(load_snippet(language) + "\n" + suffix, "utf-8")
    (tmp_path / runner_file).write_text(runner, "utf-8")
    arguments: list[str] = []
    if language.name == "java":
        subprocess.run(["javac", file], cwd=tmp_path, check=True, capture_output=True)
        arguments = [argument for case in cases for argument in _java_arguments(case)]
    if language.name == "go":
        (tmp_path / "go.mod").write_text("module callbacks\n\ngo 1.18\n", "utf-8")
        (tmp_path / "cases.json").write_text(cases_json, "utf-8")

    completed = subprocess.run(
        [*command, *arguments],
        cwd=tmp_path,
        env=_environment(tmp_path),
        input=cases_json,
        capture_output=True,
        text=True,
        check=False,
    )

    verdicts = [line for line in completed.stdout.splitlines() if line in ("yes", "no")]
    assert dict(zip((case.name for case in cases), verdicts, strict=False)) == {
        case.name: "yes" if case.is_genuine else "no" for case in cases
    }, completed.stdout + completed.stderr
    assert completed.returncode == 0, completed.stdout + completed.stderr


def _require(program: str, language: SnippetLanguage) -> None:
    """Skip the test if a program is not installed; fail in CI, where `.ci/run` installs it."""
    if shutil.which(program) is not None:
        return
    message = f"{program} is not installed; install Debian's {PACKAGES[language.name]}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{message}, as .ci/run does")
    pytest.skip(message)


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a program, with the usual build cache of Go if there is one."""
    environment = {**os.environ, **GO_OFFLINE}
    if not {"GOCACHE", "XDG_CACHE_HOME", "HOME"} & environment.keys():
        environment["GOCACHE"] = str(folder / "built")
    return environment


def _case_to_json(case: Case) -> dict[str, object]:
    return {"body": b64encode(case.body).decode(), "headers": dict(case.headers), "key": case.key}


def _java_arguments(case: Case) -> list[str]:
    case_json = _case_to_json(case)
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    return [str(case_json["body"]), *(case.headers.get(name, "") for name in names), case.key]
