"""Lint rules about the values of well-known node labels: instance types, zones, architectures, capacity types."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from cli.aws.names import SDK_NAME, load_instance_type_names, load_region_names
from cli.convert.fields.label_suggestions import VALUES_BY_LABEL, suggest_label_value
from cli.convert.reading.field_reader import choose_fix
from cli.convert.reading.remarks import FieldPath
from cli.convert.reading.sources import SourceObject
from cli.lint.finding import LintFinding, LintLevel, build_finding
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.core.formatting import join_names
from shared.model.core.labels import INSTANCE_TYPE, ZONE, normalize_label_key

INSTANCE_FAMILY: Final = "karpenter.k8s.aws/instance-family"
MAX_SUGGESTIONS: Final = 3
_ZONE_LETTERS: Final = tuple("abcdef")
_ZONE_PATTERN: Final = re.compile(r"([a-z]{2,4}(?:-[a-z]+)+-\d)(?:[a-f]|-[a-z]+-\d[a-z]|-wl\d-[a-z]+-wlz-\d)")
"""A zone, Local Zone or Wavelength Zone; the first group is the region."""
_ZONE_ID_PATTERN: Final = re.compile(r"[a-z]+\d-(?:[a-z]+\d-)?az\d")


class LabelValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that an object requires a node label to have, or not to have."""

    source_object: SourceObject
    path: FieldPath
    key: str
    text: str
    is_excluded: bool

    def build_finding(self, level: LintLevel, message: str, fix: str) -> LintFinding:
        """Return a finding about the value; an excluded value that does not exist has no effect: a warning."""
        level = "warning" if self.is_excluded else level
        return build_finding(self.source_object, level, self.path, f"{message}: {choose_fix(self.text, fix)}")


def lint_label_values(source_objects: Sequence[SourceObject], catalog: Catalog | None) -> Iterator[LintFinding]:
    """Check the values of well-known labels in requirements, node selectors and node affinity."""
    label_values = [
        label_value
        for source_object in source_objects
        for label_value in _list_label_values(source_object, source_object.value, ())
    ]
    for label_value in label_values:
        if label_value.key in VALUES_BY_LABEL and label_value.text not in VALUES_BY_LABEL[label_value.key]:
            suggestion = suggest_label_value(label_value.key, label_value.text)
            fix = (
                f"did you mean {suggestion}?"
                if suggestion
                else f"write one of {', '.join(VALUES_BY_LABEL[label_value.key])}"
            )
            yield label_value.build_finding("error", f"{label_value.text!r} is not a value of {label_value.key}", fix)
        elif label_value.key in (INSTANCE_TYPE, INSTANCE_FAMILY):
            yield from _lint_instance_type(label_value, catalog)
    yield from _lint_zones([label_value for label_value in label_values if label_value.key == ZONE], catalog)


def _list_label_values(source_object: SourceObject, value: Any, path: FieldPath) -> Iterator[LabelValue]:  # noqa: ANN401 - JSON
    """Yield the values in requirements and node affinity terms (key, operator, values) and in node selectors."""
    entries: list[tuple[FieldPath, Any, object]] = []
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _list_label_values(source_object, item, (*path, index))
    elif isinstance(value, dict):
        values = value.get("values")
        if isinstance(value.get("key"), str) and isinstance(values, list):
            entries = [((*path, "values", index), value["key"], text) for index, text in enumerate(values)]
        elif path[-1:] == ("nodeSelector",):
            entries = [((*path, key), key, text) for key, text in value.items()]
        for key, inner in value.items():
            yield from _list_label_values(source_object, inner, (*path, key))
        is_excluded = value.get("operator") == "NotIn"
        for entry_path, key, text in entries:
            if isinstance(text, str) and not ("," in text or " " in text.strip()):
                yield LabelValue(
                    source_object=source_object,
                    path=entry_path,
                    key=normalize_label_key(str(key)),
                    text=text,
                    is_excluded=is_excluded,
                )


def _lint_instance_type(label_value: LabelValue, catalog: Catalog | None) -> Iterator[LintFinding]:
    noun, known_names = "instance type", load_instance_type_names()
    sold_names = frozenset(kind.name for kind in catalog.instance_types) if catalog is not None else frozenset()
    if label_value.key == INSTANCE_FAMILY:
        noun = "instance family"
        known_names, sold_names = (frozenset(map(_get_family, names)) for names in (known_names, sold_names))
    if not known_names and not sold_names:
        yield label_value.build_finding(
            "warning", f"{noun} {label_value.text} is not checked", "add --instance-types FILE"
        )
    elif label_value.text not in known_names | sold_names:
        source = f"checked against {SDK_NAME}; for newer types, add --instance-types FILE"
        source = source if catalog is None else f"checked against {SDK_NAME} and the catalog"
        fix = f"{_suggest_name(label_value.text, sorted(known_names | sold_names))} ({source})"
        yield label_value.build_finding("error", f"unknown {noun} {label_value.text}", fix)
    elif catalog is not None and not label_value.is_excluded and label_value.text not in sold_names:
        yield label_value.build_finding(
            "warning", f"{noun} {label_value.text} is not in the catalog of {catalog.region}", "remove it"
        )


def _suggest_name(text: str, names: Sequence[str]) -> str:
    """Return the fix for *text*, which is not in *names*: the closest names, else those of the same family."""
    close = get_close_matches(text.lower(), names, n=MAX_SUGGESTIONS)
    close = close or [name for name in names if name.startswith(f"{_get_family(text)}.")]
    return f"did you mean {join_names(close, MAX_SUGGESTIONS)}?" if close else "correct or remove it"


def _get_family(instance_type: str) -> str:
    return instance_type.partition(".")[0]


def _lint_zones(zone_values: Sequence[LabelValue], catalog: Catalog | None) -> Iterator[LintFinding]:
    """Check that zones exist in the catalog; without a catalog, that they have a zone's form and one region."""
    if catalog is not None:
        zones = sorted({offering.zone for kind in catalog.instance_types for offering in kind.offerings})
        for zone_value in zone_values:
            if zone_value.text not in zones:
                fix = _suggest_zone(zone_value.text, zones) or f"write one of {', '.join(zones)}"
                yield zone_value.build_finding("error", f"the catalog has no zone {zone_value.text}", fix)
        return
    region_by_zone = {zone_value.text: _parse_region(zone_value.text) for zone_value in zone_values}
    count_by_region = Counter(region for zone_value in zone_values if (region := region_by_zone[zone_value.text]))
    main_region = count_by_region.most_common(1)[0][0] if count_by_region else "us-east-1"
    for zone_value in zone_values:
        region = region_by_zone[zone_value.text]
        if not region:
            letter = zone_value.text[-1:] if zone_value.text[-1:] in _ZONE_LETTERS else "a"
            zones = [f"{region}{letter}" for region in sorted(load_region_names())]
            fix = _suggest_zone(zone_value.text, zones) or f"write a zone, such as {main_region}a"
            yield zone_value.build_finding("error", f"{zone_value.text} is not an Availability Zone", fix)
        elif region != main_region:
            message = f"{zone_value.text} is in {region}, but other zones in the input are in {main_region}"
            yield zone_value.build_finding("warning", message, "a cluster has one region: correct or remove the zone")


def _parse_region(zone: str) -> str:
    """Return the region of *zone*; "" if *zone* does not have a zone's form or the region does not exist."""
    match = _ZONE_PATTERN.fullmatch(zone)
    return match[1] if match is not None and match[1] in load_region_names() else ""


def _suggest_zone(text: str, zones: Sequence[str]) -> str:
    """Return the fix for *text*, which is not in *zones*; "" if no zone is similar."""
    if _ZONE_ID_PATTERN.fullmatch(text):
        return "this is a zone ID: use the key topology.k8s.aws/zone-id"
    if text[:-1] in load_region_names() and f"{text[:-1]}a" in zones:
        return f"did you mean {text[:-1]}a?"
    if text in load_region_names():
        return f"this is a region: write its zones, such as {text}a"
    close = get_close_matches(text.lower(), zones, n=MAX_SUGGESTIONS)
    close.sort(key=lambda zone: sorted(zone) != sorted(text.lower()))  # swapped letters are the likeliest mistake
    return f"did you mean {close[0]}?" if close else ""
