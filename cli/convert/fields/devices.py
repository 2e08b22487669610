"""Conversion of block devices and instance metadata options of a node class, which both older APIs spell alike."""

import re
from typing import Any, Final

from cli.convert.reading.field_reader import MappingReader, choose_fix
from shared.model.core.units import parse_quantity

JsonObject = dict[str, Any]
_METADATA_DEFAULTS: Final = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 2,
    "httpTokens": "required",
}
"""Defaults of v1alpha1 and v1beta1; v1 has a hop limit of 1."""
_TEXT_FIELDS: Final = ("kmsKeyID", "snapshotID", "volumeType")
_NUMBER_FIELDS: Final = ("iops", "throughput", "volumeInitializationRate")
_OTHER_FIELDS: Final = ("volumeSize", "encrypted", "deleteOnTermination")
_SIZE_PATTERN: Final = re.compile(r"([0-9]+) *([GT])i?[bB]?", re.IGNORECASE)


def convert_metadata_options(spec: MappingReader) -> JsonObject:
    """Return `metadataOptions` with the old defaults written out."""
    options_reader, options = spec.read_mapping("metadataOptions"), dict(_METADATA_DEFAULTS)
    if options_reader is not None:
        for name in ("httpEndpoint", "httpProtocolIPv6", "httpTokens"):
            if options_reader.has(name):
                options[name] = options_reader.read_text(name)
        hop_limit = options_reader.read_integer("httpPutResponseHopLimit")
        options["httpPutResponseHopLimit"] = 2 if hop_limit is None else hop_limit
        options_reader.refuse_unread_keys()
    if options_reader is None or not options_reader.has("httpPutResponseHopLimit"):
        path = spec.get_path("metadataOptions", "httpPutResponseHopLimit")
        spec.remarks.add_change(path, "set to 2, the former default; the default of v1 is 1")
    return options


def convert_block_device(reader: MappingReader) -> JsonObject:
    """Return an item of `blockDeviceMappings`."""
    device: JsonObject = {"deviceName": reader.read_text("deviceName")}
    if not device["deviceName"]:
        reader.remarks.add_refusal(
            reader.get_path("deviceName"), "is missing: write deviceName: /dev/xvda, for example"
        )
    if (is_root := reader.read_boolean("rootVolume")) is not None:
        device["rootVolume"] = is_root
    ebs_reader = reader.read_mapping("ebs")
    if ebs_reader is None:
        reader.remarks.add_refusal(reader.get_path("ebs"), "is missing: write volumeSize and volumeType")
        ebs_reader = MappingReader({}, reader.get_path("ebs"), reader.remarks)
    ebs: JsonObject = {
        name: flag
        for name in ("deleteOnTermination", "encrypted")
        if (flag := ebs_reader.read_boolean(name)) is not None
    }
    ebs |= {name: number for name in _NUMBER_FIELDS if (number := ebs_reader.read_integer(name)) is not None}
    ebs |= {name: text for name in _TEXT_FIELDS if (text := ebs_reader.read_text(name))}
    if ebs_reader.has("volumeSize"):
        ebs["volumeSize"] = _convert_volume_size(ebs_reader)
    ebs_reader.refuse_unread_keys()
    reader.refuse_unread_keys(fixes=dict.fromkeys((*_TEXT_FIELDS, *_NUMBER_FIELDS, *_OTHER_FIELDS), "move it to ebs"))
    return device | {"ebs": ebs}


def _convert_volume_size(ebs: MappingReader) -> str:
    value = ebs.read_raw("volumeSize")
    try:
        amount = parse_quantity(str(value))
    except ValueError:
        ebs.remarks.add_refusal(
            ebs.get_path("volumeSize"), f"is {value!r}: {choose_fix(value, _suggest_size(str(value)))}"
        )
        return ""
    if amount < 1 << 30:
        ebs.remarks.add_refusal(ebs.get_path("volumeSize"), f"is {value} bytes, less than 1Gi: did you mean {value}Gi?")
    return str(value)


def _suggest_size(text: str) -> str:
    match = _SIZE_PATTERN.fullmatch(text)
    return "write a quantity, such as 100Gi" if match is None else f"write {match[1]}{match[2].upper()}i"
