"""Families of images: what became of each, and of images that somebody chose."""

import re
from difflib import get_close_matches
from typing import Any, Final

from cli.conversion.parts import Part, remedy

Object = dict[str, Any]
ALIASES: Final = {
    "AL2": "al2@latest",
    "AL2023": "al2023@latest",
    "Bottlerocket": "bottlerocket@latest",
    "Windows2019": "windows2019@latest",
    "Windows2022": "windows2022@latest",
}
FAMILIES: Final = (*ALIASES, "Custom")
_UBUNTU: Final = "name them, amiSelector: {aws::name: 'ubuntu-eks/k8s_1.30/images/*', aws::owners: '099720109477'}"
_NO_LETTER: Final = re.compile(r"[^a-z0-9]")
_MEANT: Final = {one.lower(): one for one in FAMILIES} | {
    "amazonlinux": "AL2",
    "amazonlinux2": "AL2",
    "amazonlinux2023": "AL2023",
    "amazonlinux2022": "AL2023",
    "al2022": "AL2023",
    "windows": "Windows2022",
    "windowsserver2019": "Windows2019",
    "windowsserver2022": "Windows2022",
}


def choose(spec: Part, family: str, new: Object) -> None:
    """Write *family* and terms into *new*: an alias where nobody chose images."""
    path, plain = spec.at("amiFamily"), _NO_LETTER.sub("", family.lower())
    chosen = bool(new["amiSelectorTerms"])
    if family == "Ubuntu" and chosen:
        new["amiFamily"] = "AL2"
        spec.remarks.changed(path, "Ubuntu is no family any more: its images are started as those of AL2 are")
    elif plain.startswith("ubuntu"):
        spec.remarks.refuse(path, f"no family Ubuntu is left, whose images would be found: {_UBUNTU}")
    elif family not in FAMILIES:
        close = get_close_matches(plain, _MEANT, n=1)
        hint = f"did you mean {_MEANT[close[0]]}?" if close else f"write one of {', '.join(FAMILIES)}"
        spec.remarks.refuse(path, f"is {family!r}: {remedy(family, hint)}")
    elif chosen:
        new["amiFamily"] = family
    elif family == "Custom":
        spec.remarks.refuse(spec.at("amiSelectorTerms"), "is missing: Custom has no images of its own: name some")
    else:
        new["amiSelectorTerms"] = [{"alias": ALIASES[family]}]
        advice = "; al2023@latest is its successor, which also takes other user data" if family == "AL2" else ""
        spec.remarks.changed(path, f"{family} without chosen images is the alias {ALIASES[family]} now{advice}")
