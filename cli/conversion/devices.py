"""Volumes and the instance metadata service of a node class: both older APIs say them in the same way."""

import re
from typing import Any, Final

from cli.conversion.parts import Part, remedy
from shared.model.units import parse_quantity

Object = dict[str, Any]
_METADATA: Final = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 2,
    "httpTokens": "required",
}
"""Defaults of v1alpha1 and v1beta1; v1 has a hop limit of 1."""
_TEXTS: Final = ("kmsKeyID", "snapshotID", "volumeType")
_NUMBERS: Final = ("iops", "throughput", "volumeInitializationRate")
_MORE: Final = ("volumeSize", "encrypted", "deleteOnTermination")
_SIZED: Final = re.compile(r"([0-9]+) *([GT])i?[bB]?", re.IGNORECASE)


def metadata_options(spec: Part) -> Object:
    """Answer `metadataOptions` with what was the default."""
    old, new = spec.part("metadataOptions"), dict(_METADATA)
    if old is not None:
        for name in ("httpEndpoint", "httpProtocolIPv6", "httpTokens"):
            if old.has(name):
                new[name] = old.text(name)
        hops = old.number("httpPutResponseHopLimit")
        new["httpPutResponseHopLimit"] = 2 if hops is None else hops
        old.end()
    if old is None or not old.has("httpPutResponseHopLimit"):
        path = spec.at("metadataOptions", "httpPutResponseHopLimit")
        spec.remarks.changed(path, "2 is written out: it was the default, and is 1 in v1")
    return new


def device(one: Part) -> Object:
    """Answer one of `blockDeviceMappings`."""
    new: Object = {"deviceName": one.text("deviceName")}
    if not new["deviceName"]:
        one.remarks.refuse(one.at("deviceName"), "is missing: write it, as deviceName: /dev/xvda")
    if (is_root := one.flag("rootVolume")) is not None:
        new["rootVolume"] = is_root
    old = one.part("ebs")
    if old is None:
        one.remarks.refuse(one.at("ebs"), "is missing: write volumeSize and volumeType")
        old = Part({}, one.at("ebs"), one.remarks)
    ebs: Object = {name: flag for name in ("deleteOnTermination", "encrypted") if (flag := old.flag(name)) is not None}
    ebs |= {name: number for name in _NUMBERS if (number := old.number(name)) is not None}
    ebs |= {name: text for name in _TEXTS if (text := old.text(name))}
    if old.has("volumeSize"):
        ebs["volumeSize"] = _size(old)
    old.end()
    one.end(homes=dict.fromkeys((*_TEXTS, *_NUMBERS, *_MORE), "write it under ebs"))
    return new | {"ebs": ebs}


def _size(ebs: Part) -> str:
    value = ebs.raw("volumeSize")
    try:
        amount = parse_quantity(str(value))
    except ValueError:
        ebs.remarks.refuse(ebs.at("volumeSize"), f"is {value!r}: {remedy(value, _amount(str(value)))}")
        return ""
    if amount < 1 << 30:
        ebs.remarks.refuse(ebs.at("volumeSize"), f"is {value} bytes, less than 1Gi: write {value}Gi, if that is meant")
    return str(value)


def _amount(text: str) -> str:
    sized = _SIZED.fullmatch(text)
    return "write an amount, as 100Gi" if sized is None else f"write {sized[1]}{sized[2].upper()}i"
