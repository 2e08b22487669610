"""CEL selectors of devices, with the library common-expression-language, which is imported at the first selector.

As in kube-scheduler, an expression that cannot be evaluated for a device is an error, not a mismatch.
"""

import re
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from shared.decide.scheduling.devices.cel_values import CEL_FUNCTIONS, build_quantity, build_semver
from shared.model.core.devices import Device

MAX_EXPRESSION_LENGTH: Final = 10 * 1024
"""resource.k8s.io: CELSelectorExpressionMaxLength."""
_DOMAIN_PATTERN: Final = re.compile(r"""\b(?:attributes|capacity)\s*\[\s*["']([^"']+)["']\s*\]""")
_UNSUPPORTED_SYNTAX: Final = (
    (".?", "has(…)"),
    ("[?", "in"),
    ("optional.", "has(…)"),
    ("cel.bind", "the expression twice"),
)
"""Parts of CEL that Kubernetes has and the library does not, with what to write instead."""
_EVALUATION_ERRORS: Final = (KeyError, RuntimeError, TypeError, ValueError)


class SelectorError(Exception):
    """A selector that is not valid, or cannot be evaluated for a device; the message has the expression."""


def is_selected(expression: str, device: Device) -> bool:
    """Return whether *device* matches *expression*.

    Raises:
        SelectorError: *expression* is not valid CEL, or cannot be evaluated for *device*.
    """
    result = _evaluate(expression, device)
    if isinstance(result, str):
        raise SelectorError(result)
    return result


@lru_cache(maxsize=16_384)
def _evaluate(expression: str, device: Device) -> bool | str:
    """Return whether *device* matches, or the text of the error."""
    program = _compile(expression)
    if isinstance(program, str):
        return program
    try:
        result = program.execute(_build_context(expression, device))
    except _EVALUATION_ERRORS as error:
        problem = f"cannot be evaluated for device {device.name}: {_shorten(str(error))}: correct the selector"
        return f"selector {_shorten(expression)} {_find_unsupported(expression) or problem}"
    if not isinstance(result, bool):
        return f"selector {_shorten(expression)} is not true or false for device {device.name}: correct the selector"
    return result


@lru_cache(maxsize=1024)
def _compile(expression: str) -> Any:  # noqa: ANN401 - a Program, or the text of an error
    if len(expression) > MAX_EXPRESSION_LENGTH:
        return f"selector {_shorten(expression)} is longer than {MAX_EXPRESSION_LENGTH} characters: shorten it"
    try:
        return _import_library().compile(expression)
    except ImportError:
        return "the functions do not have the library common-expression-language: deploy again"
    except ValueError as error:
        problem = f"is not valid CEL: {_shorten(str(error))}: correct the selector"
        return f"selector {_shorten(expression)} {_find_unsupported(expression) or problem}"


def _find_unsupported(expression: str) -> str:
    """Return which part of *expression* Joiner does not support, and the fix; "" if there is none."""
    return next(
        (
            f"uses `{syntax}`, which is not supported by Joiner: write {fix} instead"
            for syntax, fix in _UNSUPPORTED_SYNTAX
            if syntax in expression
        ),
        "",
    )


def _import_library() -> ModuleType:
    import cel  # noqa: PLC0415 - 2 MB that a cluster without claims never loads

    return cel


def _build_context(expression: str, device: Device) -> Any:  # noqa: ANN401 - a Context
    domains = frozenset((device.driver, *_DOMAIN_PATTERN.findall(expression)))
    context = _import_library().Context({"device": _build_device(device, domains)})
    for name, function in CEL_FUNCTIONS.items():
        context.add_function(name, function)
    return context


@lru_cache(maxsize=4096)
def _build_device(device: Device, domains: frozenset[str]) -> dict[str, Any]:
    """Return the value of the variable `device`; domains without attributes are empty maps."""
    attributes: dict[str, dict[str, Any]] = {domain: {} for domain in sorted(domains)}
    capacity: dict[str, dict[str, Any]] = {domain: {} for domain in sorted(domains)}
    for qualified_name, kind, text in device.attributes:
        domain, _, name = qualified_name.partition("/")
        value: Any = text
        if kind == "int":
            value = int(text)
        elif kind == "bool":
            value = text == "true"
        elif kind == "version":
            value = build_semver(text)
        attributes.setdefault(domain, {})[name] = value
    for qualified_name, quantity in device.capacity:
        domain, _, name = qualified_name.partition("/")
        capacity.setdefault(domain, {})[name] = build_quantity(quantity)
    return {
        "driver": device.driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": False,
    }


def _shorten(text: str, limit: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
