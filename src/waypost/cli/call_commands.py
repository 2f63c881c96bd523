"""Commands that are one call: arguments, options and help come from the operation's declaration.

A row names the operation and the options that the command offers:

    partner.command("secrets")(call_command("GET /admin/partners/{partner_id}/client-secrets"))
"""

import asyncio
from collections.abc import Callable, Mapping
from copy import copy
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

import typer

from waypost.cli.connections import ENV_FILE, EnvFile, call_control, use_admin_api
from waypost.cli.errors import fail
from waypost.cli.output import AsJson, print_view
from waypost.client.api_client import ApiClient
from waypost.client.operations import DeclaredField, find_operation
from waypost.client.responses import ApiResponseError

IfMissing = Annotated[
    bool, typer.Option("--if-missing", help="Show the existing one, if it is as requested, instead of an error.")
]
_CONFLICT: Final = 409
_TYPES: Final = {"text": str, "integer": int, "number": float, "flag": bool, "json": str}


class Existing(NamedTuple):
    """The list of what may exist already, for `--if-missing`."""

    operation: str  # lists it
    members: tuple[str, ...]  # names of the lists in its response, each within the members of the one before
    identity: tuple[str, ...]  # the fields of the request that identify it


def call_command(
    operation: str,
    options: Mapping[str, Any] | None = None,
    *,
    arguments: Mapping[str, Any] | None = None,
    existing: Existing | None = None,
    describe: Callable[[Any], str] | None = None,
    done: str = "",
    is_default: bool = False,
) -> Callable[..., None]:
    """Return the function of a command that makes one call and prints its response.

    Parameters of the path and required fields are its arguments.

    Args:
        options: the fields that are options, in order: each with None, with another name of the option, or with its
            annotation if the declaration does not say all. Its help is the field's meaning unless it has one.
        arguments: arguments with another name or with an annotation, and fields that are arguments though they may be
            left out.
        existing: `--if-missing` shows it instead of an error.
        describe: returns the response as a line for people; None: it is a table.
        done: the only output, instead of the response; it has names of arguments.
        is_default: True for what a group does without a command.
    """
    declared = find_operation(operation)
    fields = declared.fields or {}
    given = arguments or {}
    names = {name: other for name, other in given.items() if isinstance(other, str)}
    positional = {
        name: field
        for name, field in {**declared.parameters, **fields}.items()
        if (name in declared.parameters or field.is_required or name in given) and name not in (options or {})
    }
    parameters = [_argument(name, field, given.get(name)) for name, field in positional.items()]
    parameters += [_option(name, fields[name], option) for name, option in (options or {}).items()]
    is_control = " /control/" in operation
    if is_default:
        parameters.append(_keyword("context", typer.Context))
    if existing is not None:
        parameters.append(_keyword("if_missing", IfMissing, False))
    if is_control:
        parameters.append(_keyword("env_file", EnvFile, ENV_FILE))
    if not done:
        parameters.append(_keyword("as_json", AsJson, False))
    field_names = {other: name for name, other in names.items()}

    def command(
        *,
        context: typer.Context | None = None,
        if_missing: bool = False,
        env_file: Path = ENV_FILE,
        as_json: bool = False,
        **values: Any,
    ) -> None:
        if context is not None and context.invoked_subcommand is not None:
            return
        sent = {field_names.get(name, name): value for name, value in values.items() if value is not None}
        if is_control:
            response = call_control(env_file, operation, **sent)
        else:
            looked_up = existing if if_missing else None
            response = asyncio.run(use_admin_api(lambda client, _: _call_or_find(client, operation, sent, looked_up)))
        if done:
            typer.echo(done.format(**values))
        elif describe is None or as_json:
            print_view(response, as_json=as_json)
        else:
            typer.echo(describe(response))

    command.__doc__ = declared.effect
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(command)["__signature__"] = Signature(parameters)
    return command


def _argument(name: str, field: DeclaredField, given: Any) -> Parameter:
    type_, info = (_TYPES[field.kind], typer.Argument()) if isinstance(given, str | None) else _split(given)
    return _keyword(given if isinstance(given, str) else name, Annotated[type_, _add_help(info, field)])


def _option(name: str, field: DeclaredField, given: Any) -> Parameter:
    """Return an option: its type, default and help are the field's, unless it has its own."""
    if isinstance(given, str | None):
        flag = f"--{name.replace('_', '-')}" if field.default is False else None  # it has no `--no-…`
        info = typer.Option(*filter(None, (given or flag,)))
        type_ = Literal[field.choices] if field.choices else _TYPES[field.kind]
    else:
        type_, info = _split(given)
    default = Parameter.empty if info.prompt else field.default
    return _keyword(name, Annotated[type_ | None if default is None else type_, _add_help(info, field)], default)


def _split(annotation: Any) -> tuple[Any, Any]:
    """Return type and information of an annotation."""
    type_, info = get_args(annotation)
    return type_, copy(info)


def _add_help(info: Any, field: DeclaredField) -> Any:
    info.help = info.help or field.meaning
    return info


def _keyword(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


async def _call_or_find(client: ApiClient, operation: str, values: Mapping[str, Any], existing: Existing | None) -> Any:
    """Return the response; or, unless `existing` is None, what exists with these values.

    What exists with other values ends the command with an error that names the first of them.
    """
    found = None if existing is None else await _find(client, values, existing)
    if found is None:
        try:
            return await client.call(operation, **values)
        except ApiResponseError as error:  # added meanwhile?
            if existing is None or error.status != _CONFLICT:
                raise
            found = await _find(client, values, existing)
            if found is None:
                raise
    _check_equal(found, values)
    return found


async def _find(client: ApiClient, values: Mapping[str, Any], existing: Existing) -> dict[str, Any] | None:
    path = {name: values[name] for name in find_operation(existing.operation).parameters}
    rows: list[dict[str, Any]] = [await client.call(existing.operation, **path)]
    for member in existing.members:
        rows = [nested for row in rows for nested in row[member]]
    for row in rows:
        if all(_normal(name, row[name]) == _normal(name, values[name]) for name in existing.identity):
            return row
    return None


def _check_equal(found: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    for name, wanted in values.items():
        if name in found and _normal(name, found[name]) != _normal(name, wanted):  # a password is not
            fail(f"it exists with {name} {found[name]}, not {wanted}; `waypost apply` changes it")


def _normal(name: str, value: Any) -> Any:
    """Return a value in the form in which it is stored."""
    match name:
        case "email":
            return str(value).lower()
        case "phone_number":
            return "".join(char for char in str(value) if char.isdecimal())
        case _:
            return value
