"""Loading of the settings of a deployment: the CDK context is read, then validated."""

from collections.abc import Callable

import msgspec

from infra.settings.scheduler_config import encode_scheduler_config
from infra.settings.settings import StackOptions, format_context_key
from infra.settings.validation import check_options
from shared.settings_text import decode_texts, encode_text, get_base, get_form


def load_options(value_of: Callable[[str], object]) -> StackOptions:
    """Return the settings of the context; *value_of* returns the value of a key, or None, which gives the default.

    Raises:
        ValueError: a value cannot be deployed.
    """
    fields = msgspec.structs.fields(StackOptions)
    context = ((field, value_of(format_context_key(field.name))) for field in fields)
    texts = {field.name: _encode_context_value(field, value) for field, value in context if value is not None}
    options = decode_texts(StackOptions, texts, format_context_key)
    for field in fields:
        _check_grammar(field, getattr(options, field.name))
    check_options(options)
    return options


def _encode_context_value(field: msgspec.structs.FieldInfo, value: object) -> str:
    """Return the text of a value, which cdk.json can have as a number, a boolean, a list or a map."""
    if field.name == "scheduler_config" and value:
        return encode_scheduler_config(value)
    if field.name == "disruption_budgets" and isinstance(value, list):
        return msgspec.json.encode(value).decode()
    allowed_types = (str, int, float, list, dict) if get_base(field.type) == dict[str, str] else (str, int, float, list)
    if not isinstance(value, allowed_types):
        raise ValueError(f"{format_context_key(field.name)} is {value!r}: must be text")  # noqa: TRY004 - the value is what is wrong
    return encode_text(value)


def _check_grammar(field: msgspec.structs.FieldInfo, value: object) -> None:
    parse = get_form(field.type).parse
    if parse is None or not isinstance(value, str):
        return
    try:
        parse(value)
    except ValueError as error:
        raise ValueError(f"{format_context_key(field.name)}: {error}") from None
