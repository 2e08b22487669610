"""How settings are written as text: in environment variables, in stored decision records and in the CDK context."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Annotated, Final, Literal, TypeAlias, TypeVar, get_args, get_origin

import msgspec


class TextForm(msgspec.Struct, frozen=True, kw_only=True):
    """How the text of a setting is written, as far as its type does not say it."""

    variable: str = ""
    """Its environment variable, if that is Karpenter's; "": ``JOINER_`` and the name of the field."""
    allowed: str = ""
    """Allowed values, for the reference and for error messages; "": as the type says."""
    parse: Callable[[str], object] | None = None
    """The parser of a grammar; it raises a ValueError.

    A setting of type str keeps its text. The deployment checks the text; a cycle that parses it reports errors itself.
    """


LogLevel: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
"""Each level includes the ones after it."""
LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
Mode: TypeAlias = Literal["active", "plan"]
PreferencePolicy: TypeAlias = Literal["Respect", "Ignore"]
MinValuesPolicy: TypeAlias = Literal["Strict", "BestEffort"]
PodNominations: TypeAlias = Literal["Enabled", "Disabled"]
Usd: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=1e6), TextForm(allowed="USD, like 0.08")]
LaunchLimit: TypeAlias = Annotated[int, msgspec.Meta(ge=0), TextForm(allowed="a number, 0 for unlimited")]
CooldownText: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^(0|(?=[0-9])([0-9]{1,4}h)?([0-9]{1,4}m)?([0-9]{1,4}s)?)\Z"),
    TextForm(allowed="a duration like 4h or 90m, 0 for off"),
]
TopicArn: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^(arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[0-9A-Za-z_-]{1,256})?\Z"),
    TextForm(allowed="the ARN of a standard SNS topic"),
]
EventBus: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^((arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[0-9A-Za-z_./-]{1,256})?\Z"),
    TextForm(allowed="the name or ARN of an event bus"),
]
RemoteWriteUrl: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^(https?://[0-9A-Za-z.-]{1,253}(:[0-9]{1,5})?/[0-9A-Za-z._~/%-]{0,1000})?\Z"),
    TextForm(allowed="a URL like https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-ID/api/v1/remote_write"),
]
WORKSPACE_URL: Final = re.compile(
    r"https://aps-workspaces(-fips)?\.(?P<region>[a-z0-9-]+)\.(amazonaws\.com(\.cn)?|api\.aws)"
    r"/workspaces/(?P<workspace>ws-[0-9a-f-]{1,64})/api/v1/remote_write"
)
"""A remote write URL of Amazon Managed Service for Prometheus."""
RoleArn: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^(arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-.0-~]+/){0,10}[0-9A-Za-z_+=,.@-]{1,64})?\Z"),
    TextForm(allowed="the ARN of an IAM role"),
]
ExternalId: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^([0-9A-Za-z_+=,.@:/-]{2,1224})?\Z"),
    TextForm(allowed="2 to 1224 letters, digits and _+=,.@:/-"),
]
SettingsT = TypeVar("SettingsT", bound=msgspec.Struct)
GroupName: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^([0-9A-Za-z][0-9A-Za-z_.-]{0,62})?\Z"),
    TextForm(allowed="a name of at most 63 letters, digits, -, _ and ."),
]
TableArn: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^(arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[0-9A-Za-z_.-]{3,255})?\Z"),
    TextForm(allowed="the ARN of a DynamoDB table, like arn:aws:dynamodb:us-east-1:123456789012:table/joiner-groups"),
]


def decode_texts(
    settings_type: type[SettingsT], texts: Mapping[str, str], name_of: Callable[[str], str] = str
) -> SettingsT:
    """Return the settings with *texts* by field name; other texts are ignored, missing fields have their default.

    Raises:
        ValueError: the message has `name_of` the field, its text, and the allowed values.
    """
    values = {
        field.name: _decode_text(field.type, texts[field.name], name_of(field.name))
        for field in list_fields(settings_type)
        if field.name in texts
    }
    return settings_type(**values)


def encode_texts(settings: msgspec.Struct) -> dict[str, str]:
    """Return the text of each setting, by field name."""
    return {name: encode_text(value) for name, value in msgspec.structs.asdict(settings).items()}


def encode_text(value: object) -> str:
    """Return the text of a value: ``true``, ``0.08``, ``a,b``, ``team=platform``.

    >>> encode_text(True), encode_text(500), encode_text(2.0), encode_text(1e-05), encode_text(["a", "b"])
    ('true', '500', '2', '0.00001', 'a,b')
    """
    match value:
        case bool():
            return str(value).lower()
        case float():
            return format(Decimal(str(value)), "f").removesuffix(".0")
        case tuple() | list():
            return ",".join(value)
        case dict():
            return ",".join(f"{key}={item}" for key, item in value.items())
        case _:
            return str(value)


def split_list(text: str) -> list[str]:
    """Return the items of a comma-separated *text*.

    >>> split_list("a, b,"), split_list("")
    (['a', 'b'], [])
    """
    return [item.strip() for item in text.split(",") if item.strip()]


@cache
def get_variable_names(settings_type: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return the environment variable of each field, by field name."""
    return {
        field.name: get_form(field.type).variable or f"JOINER_{field.name.upper()}"
        for field in list_fields(settings_type)
    }


@cache
def list_fields(settings_type: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of *settings_type*; msgspec resolves their types again at each call."""
    return msgspec.structs.fields(settings_type)


@cache
def get_form(field_type: object) -> TextForm:
    """Return the form of a setting's text."""
    return next((note for note in getattr(field_type, "__metadata__", ()) if isinstance(note, TextForm)), TextForm())


def describe_allowed(field_type: object) -> str:
    """Return the allowed values of a type: ``active or plan``, ``0 to 100``; "" if every text is allowed."""
    base = get_base(field_type)
    if get_origin(base) is tuple:
        return describe_allowed(get_args(base)[0])
    if allowed := get_form(field_type).allowed:
        return allowed
    if get_origin(base) is Literal:
        choices = get_args(base)
        return f"one of {', '.join(map(str, choices))}" if isinstance(choices[0], int) else " or ".join(choices)
    if base is bool:
        return "true or false"
    limits = next((note for note in getattr(field_type, "__metadata__", ()) if isinstance(note, msgspec.Meta)), None)
    if limits is not None and limits.ge is not None:
        return f"{limits.ge} or more" if limits.le is None else f"{limits.ge} to {limits.le}"
    return "a whole number" if base is int else ""


@cache
def get_base(field_type: object) -> object:
    """Return a type without its annotations."""
    return get_args(field_type)[0] if get_origin(field_type) is Annotated else field_type


def _decode_text(field_type: object, text: str, name: str) -> object:
    base, parse = get_base(field_type), get_form(field_type).parse
    if parse is not None and base is not str:
        try:
            return parse(text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if get_origin(base) is tuple:
        return tuple(_decode_item(get_args(base)[0], item, f"{name} has") for item in split_list(text))
    return _decode_item(field_type, text, f"{name} is")


def _decode_item(item_type: object, text: str, introduction: str) -> object:
    base = get_base(item_type)
    kind = type(get_args(base)[0]) if get_origin(base) is Literal else base
    value: object = text
    if kind is bool:
        value = {"true": True, "false": False}.get(text, text)
    elif kind is int and re.fullmatch(r"-?[0-9]+", text):
        value = int(text)
    elif kind is float and re.fullmatch(r"-?([0-9]+(\.[0-9]+)?|\.[0-9]+)", text):
        value = float(text)
    try:
        return msgspec.convert(value, item_type)
    except msgspec.ValidationError:
        raise ValueError(f"{introduction} {text!r}: must be {describe_allowed(item_type)}") from None
