"""Compiled checks of botocore's shapes: types, required members, enums, lengths, ranges and patterns.

botocore itself checks types, required members and minimums, and leaves the rest to AWS. A check returns a list of
problems that is empty for a valid value, and describes the position of a value only when it is wrong.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

NUMBER_TYPES: Final = {"integer": int, "long": int, "float": (int, float), "double": (int, float)}
OTHER_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "boolean": bool,
    "timestamp": (datetime, int, float, str),
    "blob": (bytes, bytearray, str),
}


class ShapeProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A value that does not fit its shape."""

    kind: Literal["type", "value"]
    """``type``: botocore refuses to send it; ``value``: AWS rejects it."""
    path: str
    message: str


ShapeCheck: TypeAlias = Callable[[Any], Sequence[ShapeProblem]]
OPEN_ENUMS: Final = frozenset({"InstanceType"})
"""Enums that AWS extends without a new version of the API: botocore's list is shorter than EC2's."""


class ShapeCompiler:
    """Compiles the shapes of one service, each once."""

    def __init__(self) -> None:
        """Start without compiled shapes."""
        self._check_by_name: dict[str, ShapeCheck] = {}

    def compile_shape(self, shape: Any) -> ShapeCheck:  # noqa: ANN401 - botocore has no types
        """Return the check of *shape*; a shape may contain itself."""
        check = self._check_by_name.get(shape.name)
        if check is None:
            check = self._check_by_name[shape.name] = self._build_check(shape)
        return check

    def _build_check(self, shape: Any) -> ShapeCheck:  # noqa: ANN401 - botocore has no types
        match shape.type_name:
            case "structure":
                return self._build_structure_check(shape)
            case "list":
                return self._build_list_check(shape)
            case "map":
                return self._build_map_check(shape)
            case "string":
                return _build_string_check(shape.metadata, is_open=shape.name in OPEN_ENUMS)
            case "integer" | "long" | "float" | "double":
                return _build_number_check(shape.type_name, shape.metadata)
            case _:
                return _build_type_check(shape.type_name, shape.metadata)

    def _build_structure_check(self, shape: Any) -> ShapeCheck:  # noqa: ANN401 - botocore has no types
        members = dict(shape.members)
        required = [name for name in shape.required_members if not members[name].metadata.get("idempotencyToken")]
        check_by_member: dict[str, ShapeCheck] = {}

        def check(value: Any) -> Sequence[ShapeProblem]:  # noqa: ANN401 - any parameter
            if not isinstance(value, Mapping):
                return _reject_type(value, "dict")
            problems = [
                _build_problem("type", "", f'Missing required parameter "{name}"')
                for name in required
                if name not in value
            ]
            for name, member in value.items():
                member_check = check_by_member.get(name)
                if member_check is None:
                    if name not in members:
                        problems.append(_build_problem("type", "", f'Unknown parameter "{name}"'))
                        continue
                    member_check = check_by_member[name] = self.compile_shape(members[name])
                problems += _add_prefix(f".{name}", member_check(member))
            return problems

        return check

    def _build_list_check(self, shape: Any) -> ShapeCheck:  # noqa: ANN401 - botocore has no types
        minimum, maximum = _get_limits(shape.metadata)
        element_checks: list[ShapeCheck] = []

        def check(value: Any) -> Sequence[ShapeProblem]:  # noqa: ANN401 - any parameter
            if not isinstance(value, (list, tuple)):
                return _reject_type(value, "list")
            if not element_checks:
                element_checks.append(self.compile_shape(shape.member))
            problems = _check_limits(len(value), minimum, maximum, "length")
            for index, element in enumerate(value):
                problems += _add_prefix(f"[{index}]", element_checks[0](element))
            return problems

        return check

    def _build_map_check(self, shape: Any) -> ShapeCheck:  # noqa: ANN401 - botocore has no types
        minimum, maximum = _get_limits(shape.metadata)
        entry_checks: list[ShapeCheck] = []

        def check(value: Any) -> Sequence[ShapeProblem]:  # noqa: ANN401 - any parameter
            if not isinstance(value, Mapping):
                return _reject_type(value, "dict")
            if not entry_checks:
                entry_checks.extend((self.compile_shape(shape.key), self.compile_shape(shape.value)))
            problems = _check_limits(len(value), minimum, maximum, "length")
            for key, entry in value.items():
                problems += _add_prefix(f" (key {key})", entry_checks[0](key))
                problems += _add_prefix(f".{key}", entry_checks[1](entry))
            return problems

        return check


def _build_string_check(metadata: Mapping[str, Any], *, is_open: bool) -> ShapeCheck:
    minimum, maximum = _get_limits(metadata)
    allowed = frozenset(() if is_open else metadata.get("enum", ()))
    pattern = _compile_pattern(metadata.get("pattern", ""))

    def check(value: Any) -> Sequence[ShapeProblem]:  # noqa: ANN401 - any parameter
        if not isinstance(value, str):
            return _reject_type(value, "str")
        problems = _check_limits(len(value), minimum, maximum, "length")
        if allowed and value not in allowed:
            problems.append(
                _build_problem("value", "", f"Member must satisfy enum value set: {sorted(allowed)}, not {value!r}")
            )
        if pattern is not None and pattern.fullmatch(value) is None:
            text = f"Member must satisfy regular expression pattern: {pattern.pattern}, not {value!r}"
            problems.append(_build_problem("value", "", text))
        return problems

    return check


def _build_number_check(type_name: str, metadata: Mapping[str, Any]) -> ShapeCheck:
    types, (minimum, maximum) = NUMBER_TYPES[type_name], _get_limits(metadata)

    def check(value: Any) -> Sequence[ShapeProblem]:  # noqa: ANN401 - any parameter
        if isinstance(value, bool) or not isinstance(value, types):  # type: ignore[arg-type]
            return _reject_type(value, type_name)
        return _check_limits(value, minimum, maximum, "value")

    return check


def _build_type_check(type_name: str, metadata: Mapping[str, Any]) -> ShapeCheck:
    types, (minimum, maximum) = OTHER_TYPES[type_name], _get_limits(metadata)

    def check(value: Any) -> Sequence[ShapeProblem]:  # noqa: ANN401 - any parameter
        if not isinstance(value, types) and not (type_name == "blob" and hasattr(value, "read")):
            return _reject_type(value, type_name)
        return _check_limits(len(value), minimum, maximum, "length") if isinstance(value, (bytes, bytearray)) else ()

    return check


def _get_limits(metadata: Mapping[str, Any]) -> tuple[float | None, float | None]:
    return metadata.get("min"), metadata.get("max")


def _check_limits(number: float, minimum: float | None, maximum: float | None, subject: str) -> list[ShapeProblem]:
    """Return a problem if *number* is out of range; botocore itself checks the minimum."""
    if minimum is not None and number < minimum:
        return [_build_problem("type", "", f"Invalid {subject}: {number}, valid min {subject}: {minimum}")]
    if maximum is not None and number > maximum:
        return [
            _build_problem("value", "", f"Member must have {subject} less than or equal to {maximum}, not {number}")
        ]
    return []


def _compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """Compile a pattern of a service model; None for the few that Python's syntax does not cover."""
    try:
        return re.compile(pattern, re.DOTALL) if pattern else None
    except re.error:
        return None


def _reject_type(value: object, expected: str) -> list[ShapeProblem]:
    return [_build_problem("type", "", f"Invalid type: {type(value).__name__}, valid type: {expected}")]


def _build_problem(kind: Literal["type", "value"], path: str, message: str) -> ShapeProblem:
    return ShapeProblem(kind=kind, path=path, message=message)


def _add_prefix(prefix: str, problems: Sequence[ShapeProblem]) -> Sequence[ShapeProblem]:
    if not problems:
        return problems
    return [msgspec.structs.replace(problem, path=prefix + problem.path) for problem in problems]
