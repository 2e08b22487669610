"""Conversion of AMI families, with or without selected images."""

import re
from difflib import get_close_matches
from typing import Any, Final

from cli.convert.reading.field_reader import MappingReader, choose_fix

JsonObject = dict[str, Any]
ALIAS_BY_FAMILY: Final = {
    "AL2": "al2@latest",
    "AL2023": "al2023@latest",
    "Bottlerocket": "bottlerocket@latest",
    "Windows2019": "windows2019@latest",
    "Windows2022": "windows2022@latest",
}
AMI_FAMILIES: Final = (*ALIAS_BY_FAMILY, "Custom")
_UBUNTU_FIX: Final = "name them, amiSelector: {aws::name: 'ubuntu-eks/k8s_1.30/images/*', aws::owners: '099720109477'}"
_NON_ALPHANUMERIC: Final = re.compile(r"[^a-z0-9]")
_FAMILY_BY_SYNONYM: Final = {family.lower(): family for family in AMI_FAMILIES} | {
    "amazonlinux": "AL2",
    "amazonlinux2": "AL2",
    "amazonlinux2023": "AL2023",
    "amazonlinux2022": "AL2023",
    "al2022": "AL2023",
    "windows": "Windows2022",
    "windowsserver2019": "Windows2019",
    "windowsserver2022": "Windows2022",
}


def convert_ami_family(spec: MappingReader, family: str, converted: JsonObject) -> None:
    """Write *family* and image terms into *converted*: an alias if no images were selected."""
    path, normalized = spec.get_path("amiFamily"), _NON_ALPHANUMERIC.sub("", family.lower())
    has_images = bool(converted["amiSelectorTerms"])
    if family == "Ubuntu" and has_images:
        converted["amiFamily"] = "AL2"
        spec.remarks.add_change(path, "the family Ubuntu no longer exists: its images use the family AL2")
    elif normalized.startswith("ubuntu"):
        spec.remarks.add_refusal(path, f"the family Ubuntu no longer exists: {_UBUNTU_FIX}")
    elif family not in AMI_FAMILIES:
        close = get_close_matches(normalized, _FAMILY_BY_SYNONYM, n=1)
        hint = f"did you mean {_FAMILY_BY_SYNONYM[close[0]]}?" if close else f"write one of {', '.join(AMI_FAMILIES)}"
        spec.remarks.add_refusal(path, f"is {family!r}: {choose_fix(family, hint)}")
    elif has_images:
        converted["amiFamily"] = family
    elif family == "Custom":
        spec.remarks.add_refusal(
            spec.get_path("amiSelectorTerms"), "is missing: the family Custom needs selected images"
        )
    else:
        converted["amiSelectorTerms"] = [{"alias": ALIAS_BY_FAMILY[family]}]
        advice = "; its successor al2023@latest uses another user data format" if family == "AL2" else ""
        spec.remarks.add_change(path, f"{family} converted to the alias {ALIAS_BY_FAMILY[family]}{advice}")
