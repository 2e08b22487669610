"""Loading of the settings of a cluster: values are decoded, then validated."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, get_origin

import msgspec

from infra.settings.errors import InvalidSettingsError
from infra.settings.scheduler_config import encode_scheduler_config
from infra.settings.settings import SETTING_NAMES, StackOptions, format_setting_name
from infra.settings.validation import find_option_errors
from shared.settings_text import decode_texts, encode_text, get_base, get_form

RENAMED_SETTINGS: Final = {"hints": "pod-nominations"}
"""Names of earlier versions, with today's names."""


def load_options(values: Mapping[str, object], locate: Callable[[str], str] = str) -> StackOptions:
    """Return the settings with *values* by name; missing settings have their default.

    Values are texts, numbers, booleans, lists or maps. *locate* returns how messages name a setting.

    Raises:
        InvalidSettingsError: settings are unknown, or values cannot be deployed: one message for each. Settings are
            checked in combination only if each of them is valid.
    """
    texts, errors = encode_values(values, locate)
    if errors:
        raise InvalidSettingsError(errors)
    options = decode_texts(StackOptions, texts)
    if option_errors := tuple(_locate_error(message, locate) for message in find_option_errors(options)):
        raise InvalidSettingsError(option_errors)
    return options


def encode_values(
    values: Mapping[str, object], locate: Callable[[str], str] = str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the texts of the valid *values* by field, and the errors of the other ones."""
    errors = list(_find_unknown_names(values, locate))
    texts: dict[str, str] = {}
    for field in msgspec.structs.fields(StackOptions):
        name = format_setting_name(field.name)
        if name not in values:
            continue
        try:
            texts[field.name] = _check_value(field, values[name], locate(name))
        except ValueError as error:
            errors.append(str(error))
    return texts, tuple(errors)


def check_setting_names(names: Iterable[str], locate: Callable[[str], str] = str) -> None:
    """Check that *names* are settings.

    Raises:
        InvalidSettingsError: the messages suggest the settings that were probably meant.
    """
    if errors := tuple(_find_unknown_names(names, locate)):
        raise InvalidSettingsError(errors)


def _find_unknown_names(names: Iterable[str], locate: Callable[[str], str]) -> Iterator[str]:
    for name in sorted(set(names) - {*SETTING_NAMES}):
        yield f"{locate(name)} is not a setting: {suggest_setting(name)}"


def _locate_error(message: str, locate: Callable[[str], str]) -> str:
    """Return *message* with the location of the setting with which it begins."""
    match = re.match(r"[a-z-]+", message)
    name = match.group() if match is not None else ""
    return f"{locate(name)}{message.removeprefix(name)}" if name in SETTING_NAMES else message


def _check_value(field: msgspec.structs.FieldInfo, value: object, name: str) -> str:
    """Return the text of *value*.

    Raises:
        ValueError: it is not allowed; the message begins with *name*.
    """
    text = _encode_value(field, value, name)
    options = decode_texts(StackOptions, {field.name: text}, lambda _field: name)
    _check_grammar(field, getattr(options, field.name), name)
    return text


def suggest_setting(name: str) -> str:
    """Return the setting that a user probably meant by *name*, as advice.

    >>> suggest_setting("joiner:mode"), suggest_setting("log_day"), suggest_setting("hints")
    ('write mode', 'did you mean log-days?', 'did you mean pod-nominations?')
    """
    plain_name = name.removeprefix("joiner:")
    if plain_name != name and plain_name in SETTING_NAMES:
        return f"write {plain_name}"
    renamed = RENAMED_SETTINGS.get(plain_name)
    suggestions = [renamed] if renamed else get_close_matches(plain_name, SETTING_NAMES, 1)
    return f"did you mean {suggestions[0]}?" if suggestions else "docs/reference/settings.md lists all settings"


def _encode_value(field: msgspec.structs.FieldInfo, value: object, name: str) -> str:
    """Return the text of a value, which can be a number, a boolean, a list or a map."""
    if field.name == "scheduler_config" and value:
        return encode_scheduler_config(value)
    if field.name == "disruption_budgets" and isinstance(value, list):
        return msgspec.json.encode(value).decode()
    base = get_base(field.type)
    has_grammar = get_form(field.type).parse is not None
    allowed_types: tuple[type, ...] = (str, int, float)
    if get_origin(base) is tuple or has_grammar:
        allowed_types += (list, tuple)
    if get_origin(base) is dict or has_grammar:
        allowed_types += (dict,)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if not isinstance(value, allowed_types) or not all(isinstance(item, str | int | float) for item in items):
        raise ValueError(f"{name} is {value!r}: must be text")
    return encode_text(value)


def _check_grammar(field: msgspec.structs.FieldInfo, value: object, name: str) -> None:
    parse = get_form(field.type).parse
    if parse is None or not isinstance(value, str):
        return
    try:
        parse(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
