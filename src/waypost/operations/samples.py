"""Sample requests in four languages, made from the tables: the API reference shows them, and a test runs some."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from waypost.api.authorisation import Credential
from waypost.api.fields import FieldType, RequestField
from waypost.api.route import BodyFormat, RouteRow
from waypost.operations import openapi

_SAMPLE_FIELDS: Final = (  # fields that a sample request shows although they may be left out
    {"password", "enableSample", "buttons", "channel", "source", "src.name", "message", "postbackTexts", "version"}
    | {"messaging_product", "recipient_type", "to", "type", "text", "file_type", "active", "name", "categories"}
    | {"typing_indicator", "vertical", "desc", "profileEmail", "prompts"}
)
# fmt: off
CREDENTIAL_VARIABLES: Final[Mapping[Credential, str]] = {  # environment variables, as `waypost dev` names them
    Credential.PARTNER_TOKEN: "PARTNER_TOKEN",
    Credential.UNIVERSAL_TOKEN: "UNIVERSAL_TOKEN",
    Credential.APP_TOKEN:     "APP_TOKEN",
    Credential.API_KEY:       "API_KEY",
}
# fmt: on


class SampleRequest(NamedTuple):
    """A request with sample values."""

    method: str
    url: str
    # name of its header, and of the environment variable with its value; None: it needs none
    credential: tuple[str, str] | None
    fields: Mapping[str, str]  # of the form; empty if it has none
    json_body: Mapping[str, Any] | None  # of a JSON body; None if the body is no JSON
    is_multipart: bool


def make_sample_request(row: RouteRow, server: str) -> SampleRequest:
    """Return a request to a route, with the documented examples as its values."""
    path = row.path
    for name in openapi.path_parts(row):
        path = path.replace(f"{{{name}}}", openapi.PATH_PARTS[name][1])
    query = {field.name: field.example for field in row.query if field.required}
    url = server + path + (f"?{urlencode(query)}" if query else "")
    shown = {field.name: field for field in row.fields if is_prefilled(field)}
    is_json = row.body_format is BodyFormat.JSON
    return SampleRequest(
        row.method,
        url,
        (openapi.credential_header(row), CREDENTIAL_VARIABLES[row.credential])
        if openapi.SECURITY[row.credential]
        else None,
        {} if is_json else {name: field.example for name, field in shown.items()},
        {
            name: (json.loads(field.example) if field.type in (FieldType.OBJECT, FieldType.JSON) else field.example)
            for name, field in shown.items()
        }
        if is_json
        else None,
        row.body_format is BodyFormat.MULTIPART,
    )


def is_prefilled(field: RequestField) -> bool:
    """True if a sample has a field; all others may be left out."""
    return bool(field.example) and (field.required or field.name in _SAMPLE_FIELDS)


def format_curl(sample: SampleRequest) -> str:
    """Return a sample as a curl command."""
    lines = [f"curl -X {sample.method} {_shell_text(sample.url)}"]
    if sample.credential:
        header, variable = sample.credential
        lines.append(f'-H "{header}: ${variable}"')
    if sample.json_body is not None:
        lines += ["-H 'Content-Type: application/json'", f"-d {_shell_text(_json_text(sample.json_body))}"]
    flag = "-F" if sample.is_multipart else "--data-urlencode"
    lines += [f"{flag} {_shell_text(f'{name}={value}')}" for name, value in sample.fields.items()]
    return " \\\n  ".join(lines)


def format_python(sample: SampleRequest) -> str:
    """Return a sample as a Python program with the package requests."""
    arguments = [repr(sample.method), repr(sample.url)]
    if sample.credential:
        header, variable = sample.credential
        arguments.append(f'headers={{"{header}": os.environ["{variable}"]}}')
    if sample.json_body is not None:
        arguments.append(f"json={_python_object(sample.json_body)}")
    elif sample.is_multipart:
        arguments.append(f"files={_python_object({name: (None, value) for name, value in sample.fields.items()})}")
    elif sample.fields:
        arguments.append(f"data={_python_object(sample.fields)}")
    call = "".join(f"    {argument},\n" for argument in arguments)
    imports = "import os\n\nimport requests" if sample.credential else "import requests"
    return f"{imports}\n\nresponse = requests.request(\n{call})\nprint(response.status_code, response.text)\n"


def format_node(sample: SampleRequest) -> str:
    """Return a sample as a JavaScript module for Node."""
    headers: list[str] = []
    if sample.credential:
        header, variable = sample.credential
        headers.append(f"{_name(header)}: process.env.{variable}")
    body, before = "", ""
    if sample.json_body is not None:
        headers.append('"Content-Type": "application/json"')
        body = f"JSON.stringify({_script_object(sample.json_body)})"
    elif sample.is_multipart:
        rows = "".join(
            f"form.append({_json_text(name)}, {_json_text(value)});\n" for name, value in sample.fields.items()
        )
        before, body = f"const form = new FormData();\n{rows}\n", "form"
    elif sample.fields:
        body = f"new URLSearchParams({_script_object(sample.fields)})"
    options = [f"method: {_json_text(sample.method)}"]
    options += [f"headers: {{ {', '.join(headers)} }}"] if headers else []
    options += [f"body: {body}"] if body else []
    lines = "".join(f"  {option},\n" for option in options)
    call = f"const response = await fetch({_json_text(sample.url)}, {{\n{lines}}});\n"
    return f"{before}{call}console.log(response.status, await response.text());\n"


def format_php(sample: SampleRequest) -> str:
    """Return a sample as a PHP program, without the extension curl."""
    headers: list[str] = []
    content, before = "", ""
    if sample.credential:
        header, variable = sample.credential
        headers.append(f"'{header}: ' . getenv('{variable}')")
    if sample.json_body is not None:
        headers.append("'Content-Type: application/json'")
        content = _php_text(_json_text(sample.json_body))
    elif sample.is_multipart:
        headers.append('"Content-Type: multipart/form-data; boundary=$boundary"')
        before = (
            f"$fields = {_php_array(sample.fields, '')};\n"
            "$boundary = bin2hex(random_bytes(16));\n"
            "$body = '';\n"
            "foreach ($fields as $name => $value) {\n"
            '    $body .= "--$boundary\\r\\nContent-Disposition: form-data; '
            'name=\\"$name\\"\\r\\n\\r\\n$value\\r\\n";\n'
            "}\n"
        )
        content = '$body . "--$boundary--\\r\\n"'
    elif sample.fields:
        headers.append("'Content-Type: application/x-www-form-urlencoded'")
        content = f"http_build_query({_php_array(sample.fields, '    ')})"
    options = [f"'method' => '{sample.method}'"]
    options += [f"'header' => [{', '.join(headers)}]"] if headers else []
    options += [f"'content' => {content}"] if content else []
    options.append("'ignore_errors' => true")
    lines = "".join(f"    {option},\n" for option in options)
    return (
        f"<?php\n{before}$context = stream_context_create(['http' => [\n{lines}]]);\n"
        f"$response = file_get_contents({_php_text(sample.url)}, false, $context);\n"
        'echo $http_response_header[0], "\\n", $response, "\\n";\n'
    )


# fmt: off
LANGUAGES: Final[tuple[tuple[str, Callable[[SampleRequest], str]], ...]] = (
    ("curl",   format_curl),
    ("Python", format_python),
    ("Node",   format_node),
    ("PHP",    format_php),
)
# fmt: on


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shell_text(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _php_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _php_array(fields: Mapping[str, str], indent: str) -> str:
    rows = "".join(f"{indent}    {_php_text(name)} => {_php_text(value)},\n" for name, value in fields.items())
    return f"[\n{rows}{indent}]"


def _python_object(members: Mapping[str, Any]) -> str:
    rows = "".join(f"        {name!r}: {value!r},\n" for name, value in members.items())
    return f"{{\n{rows}    }}"


def _script_object(members: Mapping[str, Any]) -> str:
    rows = "".join(f"    {_json_text(name)}: {_json_text(value)},\n" for name, value in members.items())
    return f"{{\n{rows}  }}"


def _name(header: str) -> str:
    return header if header.isidentifier() else _json_text(header)
