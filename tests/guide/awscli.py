"""The part of `aws` that the guide needs, on boto3; the test runner puts it on PATH where there is no AWS CLI.

Two forms::

    aws SERVICE OPERATION --option VALUE …        any operation of any service, options named as its parameters
    aws s3 cp FOLDER s3://BUCKET/PREFIX --recursive

Values are JSON, or the shorthand of the AWS CLI: `a=1,b=2` for a structure, several words for a list. The response, or
what `--query` selects from it, is printed as JSON, or with `--output text` as words. Unknown names and values of the
wrong shape are refused.
"""

import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import boto3
import botocore.session
import jmespath
from botocore import xform_name
from botocore.exceptions import UnknownServiceError
from botocore.model import ListShape, OperationModel, Shape, StructureShape
from botocore.validate import ParamValidator

UNSENT_CALLS: Final = frozenset((("eks", "update_nodegroup_config"),))
"""Validated like other calls but not sent: the embedded account has no node groups."""
_GLOBAL_OPTIONS: Final = frozenset(("--region", "--output", "--query"))


class NoSuchCall(Exception):
    """The service, operation or option does not exist, or a value has the wrong shape."""


def parse_command(words: Sequence[str]) -> tuple[str, str, dict[str, Any]]:
    """Return service, operation and parameters of the command *words*, without its `aws`.

    Raises:
        NoSuchCall: AWS has no such call.
    """
    service, operation, *options = words
    model = _get_operation(service, operation)
    members = {f"--{_to_dashed_name(name)}": name for name in model.input_shape.members} if model.input_shape else {}
    parameters: dict[str, Any] = {}
    for option, values in _split_options(options):
        if option in members:
            name = members[option]
            parameters[name] = _parse_value(model.input_shape.members[name], values)
        elif option not in _GLOBAL_OPTIONS:
            raise NoSuchCall(f"aws {service} {operation} has no {option}")
    if (
        report := ParamValidator().validate(parameters, model.input_shape).generate_report()
        if model.input_shape
        else ""
    ):
        raise NoSuchCall(f"aws {service} {operation}: {report}")
    return service, xform_name(model.name), parameters


def _get_operation(service: str, operation: str) -> OperationModel:
    try:
        model = _get_session().get_service_model(service)
    except UnknownServiceError as error:
        raise NoSuchCall(str(error)) from error
    operation_names = {_to_dashed_name(name): name for name in model.operation_names}
    if operation not in operation_names:
        raise NoSuchCall(f"aws {service} has no {operation}")
    return model.operation_model(operation_names[operation])


@cache
def _get_session() -> Any:
    return botocore.session.get_session()


def _to_dashed_name(name: str) -> str:
    return str(xform_name(name, "-"))


def _split_options(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return each option with the words behind it."""
    options: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith("--"):
            options.append((word, []))
        elif options:
            options[-1][1].append(word)
        else:
            raise NoSuchCall(f"{word}: an option comes first")
    return options


def _parse_value(shape: Shape, words: list[str]) -> Any:
    """Parse *words* according to *shape*."""
    if words and words[0][:1] in "[{":
        return json.loads(" ".join(words))
    if isinstance(shape, ListShape):
        return [_parse_value(shape.member, [word]) for word in words]
    if isinstance(shape, StructureShape):
        return _parse_structure(shape, words[0])
    text = words[0] if words else "true"
    if shape.type_name in ("integer", "long"):
        return int(text)
    return text == "true" if shape.type_name == "boolean" else text


def _parse_structure(shape: StructureShape, text: str) -> dict[str, Any]:
    """Parse `a=1,b=2,3`: a part without a name continues the list before it."""
    words_by_name: dict[str, list[str]] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if equals:
            words_by_name[name] = [value]
        elif words_by_name:
            words_by_name[[*words_by_name][-1]].append(name)
        else:
            raise NoSuchCall(f"{text}: want name=value")
    if unknown := words_by_name.keys() - shape.members.keys():
        raise NoSuchCall(f"{shape.name} has no {', '.join(sorted(unknown))}")
    return {name: _parse_value(shape.members[name], values) for name, values in words_by_name.items()}


def copy_folder(folder: Path, target: str) -> None:
    """Upload every file of *folder* below *target*, ``s3://BUCKET/PREFIX``."""
    bucket, _, prefix = target.removeprefix("s3://").partition("/")
    client = boto3.client("s3")
    for path in sorted(entry for entry in folder.rglob("*") if entry.is_file()):
        client.upload_file(str(path), bucket, f"{prefix}{path.relative_to(folder).as_posix()}")


def main(words: Sequence[str]) -> int:
    """Call AWS at the endpoint of the environment and print the response."""
    if [*words[:2]] == ["s3", "cp"] and words[-1] == "--recursive":
        copy_folder(Path(words[2]), words[3])
        return 0
    try:
        service, operation, parameters = parse_command(words)
    except NoSuchCall as error:
        sys.stderr.write(f"aws: {error}\n")
        return 252
    if (service, operation) in UNSENT_CALLS:
        return 0
    answer = getattr(boto3.client(service), operation)(**parameters)
    answer.pop("ResponseMetadata", None)
    sys.stdout.write(render_response(answer, words))
    return 0


def render_response(response: dict[str, Any], words: Sequence[str]) -> str:
    """Render what `--query` among *words* selects from *response*, in the format of `--output`."""
    options = {name: values[0] for name, values in _split_options(words[2:]) if name in _GLOBAL_OPTIONS}
    value: Any = jmespath.search(options["--query"], response) if "--query" in options else response
    if options.get("--output") == "text":
        return "\t".join(map(str, value if isinstance(value, list) else [value])) + "\n"
    return json.dumps(value, indent=1, default=str) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
