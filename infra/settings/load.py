"""Loading of the settings of a cluster: values are decoded, then validated."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Final, get_origin

import msgspec

from infra.settings.scheduler_config import encode_scheduler_config
from infra.settings.settings import SETTING_NAMES, StackOptions, format_setting_name
from infra.settings.validation import check_options
from shared.settings_text import decode_texts, encode_text, get_base, get_form

RENAMED_SETTINGS: Final = {"hints": "pod-nominations"}
"""Names of earlier versions, with today's names."""


def load_options(values: Mapping[str, object], locate: Callable[[str], str] = str) -> StackOptions:
    """Return the settings with *values* by name; missing settings have their default.

    Values are texts, numbers, booleans, lists or maps. *locate* returns how messages name a setting.

    Raises:
        ValueError: a setting is unknown, or a value cannot be deployed.
    """

    def format_name(field: str) -> str:
        return locate(format_setting_name(field))

    check_setting_names(values, locate)
    fields = msgspec.structs.fields(StackOptions)
    texts = {
        field.name: _encode_value(field, values[name], locate(name))
        for field in fields
        if (name := format_setting_name(field.name)) in values
    }
    options = decode_texts(StackOptions, texts, format_name)
    for field in fields:
        _check_grammar(field, getattr(options, field.name), format_name(field.name))
    check_options(options)
    return options


def check_setting_names(names: Iterable[str], locate: Callable[[str], str] = str) -> None:
    """Check that *names* are settings.

    Raises:
        ValueError: the message suggests the setting that was probably meant.
    """
    for name in sorted(set(names) - {*SETTING_NAMES}):
        raise ValueError(f"{locate(name)} is not a setting: {suggest_setting(name)}")


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
