"""As much of `aws` as pages need, on boto3: it is what the runner puts on PATH, where there is no AWS CLI.

    aws SERVICE OPERATION --option VALUE …        any operation of any service, options as its parameters are called
    aws s3 cp FOLDER s3://BUCKET/PREFIX --recursive

Values are JSON, or the shorthand of the AWS CLI: `a=1,b=2` for a structure, several words for a list. The answer is
printed as JSON. A name that there is not is refused, as is a value of the wrong shape.
"""

import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import boto3
import botocore.session
from botocore import xform_name
from botocore.exceptions import UnknownServiceError
from botocore.model import ListShape, OperationModel, Shape, StructureShape
from botocore.validate import ParamValidator

UNSENT: Final = frozenset((("eks", "update_nodegroup_config"),))
"""Checked like the others, and not sent: the embedded account has no groups of nodes."""
_GLOBAL: Final = frozenset(("--region", "--output", "--query"))


class NoSuchCall(Exception):
    """There is no such service, operation or option, or a value is of another shape."""


def call_of(words: Sequence[str]) -> tuple[str, str, dict[str, Any]]:
    """Answer service, operation and parameters of the command *words*, without its `aws`.

    Raises:
        NoSuchCall: AWS has no such call.
    """
    service, operation, *options = words
    model = _operation(service, operation)
    members = {f"--{_dashed(name)}": name for name in model.input_shape.members} if model.input_shape else {}
    given: dict[str, Any] = {}
    for option, values in _options(options):
        if option in members:
            name = members[option]
            given[name] = _value(model.input_shape.members[name], values)
        elif option not in _GLOBAL:
            raise NoSuchCall(f"aws {service} {operation} has no {option}")
    if report := ParamValidator().validate(given, model.input_shape).generate_report() if model.input_shape else "":
        raise NoSuchCall(f"aws {service} {operation}: {report}")
    return service, xform_name(model.name), given


def _operation(service: str, operation: str) -> OperationModel:
    try:
        model = _session().get_service_model(service)
    except UnknownServiceError as error:
        raise NoSuchCall(str(error)) from error
    named = {_dashed(name): name for name in model.operation_names}
    if operation not in named:
        raise NoSuchCall(f"aws {service} has no {operation}")
    return model.operation_model(named[operation])


@cache
def _session() -> Any:
    return botocore.session.get_session()


def _dashed(name: str) -> str:
    return str(xform_name(name, "-"))


def _options(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Answer each option with the words behind it."""
    found: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith("--"):
            found.append((word, []))
        elif found:
            found[-1][1].append(word)
        else:
            raise NoSuchCall(f"{word}: an option comes first")
    return found


def _value(shape: Shape, words: list[str]) -> Any:
    """Read *words* as *shape* has it."""
    if words and words[0][:1] in "[{":
        return json.loads(" ".join(words))
    if isinstance(shape, ListShape):
        return [_value(shape.member, [word]) for word in words]
    if isinstance(shape, StructureShape):
        return _structure(shape, words[0])
    text = words[0] if words else "true"
    if shape.type_name in ("integer", "long"):
        return int(text)
    return text == "true" if shape.type_name == "boolean" else text


def _structure(shape: StructureShape, text: str) -> dict[str, Any]:
    """Read `a=1,b=2,3`: what has no name of its own goes on with the list before it."""
    found: dict[str, list[str]] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if equals:
            found[name] = [value]
        elif found:
            found[[*found][-1]].append(name)
        else:
            raise NoSuchCall(f"{text}: want name=value")
    if unknown := found.keys() - shape.members.keys():
        raise NoSuchCall(f"{shape.name} has no {', '.join(sorted(unknown))}")
    return {name: _value(shape.members[name], values) for name, values in found.items()}


def copy(folder: Path, target: str) -> None:
    """Put every file of *folder* below *target*, ``s3://BUCKET/PREFIX``."""
    bucket, _, prefix = target.removeprefix("s3://").partition("/")
    client = boto3.client("s3")
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        client.upload_file(str(path), bucket, f"{prefix}{path.relative_to(folder).as_posix()}")


def main(words: Sequence[str]) -> int:
    """Call AWS where the environment says it is, and print what it answers."""
    if [*words[:2]] == ["s3", "cp"] and words[-1] == "--recursive":
        copy(Path(words[2]), words[3])
        return 0
    try:
        service, operation, parameters = call_of(words)
    except NoSuchCall as error:
        sys.stderr.write(f"aws: {error}\n")
        return 252
    if (service, operation) in UNSENT:
        return 0
    answer = getattr(boto3.client(service), operation)(**parameters)
    answer.pop("ResponseMetadata", None)
    sys.stdout.write(json.dumps(answer, indent=1, default=str) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
