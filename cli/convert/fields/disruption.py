"""Conversion of expiration and disruption settings of Provisioners and NodePools v1beta1."""

import re
from difflib import get_close_matches
from typing import Any, Final

from cli.convert.fields.relocated_fields import FIXES_IN_CONSOLIDATION
from cli.convert.reading.field_reader import MappingReader, choose_fix
from cli.convert.reading.fixes import suggest_duration

JsonObject = dict[str, Any]
_V1_POLICY_BY_BETA_POLICY: Final = {"WhenUnderutilized": "WhenEmptyOrUnderutilized", "WhenEmpty": "WhenEmpty"}
_DURATION_PATTERN: Final = re.compile(r"(?:[0-9]+[smh])+|Never")


def _read_seconds(spec: MappingReader, field: str) -> int | None:
    text = spec.is_set(field) and str(spec.read_raw(field)).strip()
    if text and text[-1].isalpha() and (corrected := suggest_duration(text)).rstrip("hms").isdecimal():
        seconds = int(corrected[:-1]) * {"h": 3600, "m": 60, "s": 1}[corrected[-1]]
        spec.remarks.add_refusal(spec.get_path(field), f"is {text!r}, but must be a number of seconds: write {seconds}")
        return None
    number = spec.read_integer(field)
    if number is not None and number < 0:
        spec.remarks.add_refusal(spec.get_path(field), f"is {number}: write seconds, 0 or more")
    return number


def convert_expiration(spec: MappingReader) -> str:
    """Return expireAfter of a pool for a Provisioner's ttlSecondsUntilExpired."""
    path, number = spec.get_path("ttlSecondsUntilExpired"), _read_seconds(spec, "ttlSecondsUntilExpired")
    if number is None:
        spec.remarks.add_change(
            path, "was not set, so nodes did not expire: set expireAfter: Never (the default of v1 is 720h)"
        )
        return "Never"
    if number == 0:
        spec.remarks.add_refusal(path, "is 0: nodes would expire before they are ready: write a time, or remove it")
    spec.remarks.add_change(path, f"converted to template.spec.expireAfter: {number}s; expiration ignores budgets")
    return f"{number}s"


def convert_provisioner_disruption(spec: MappingReader) -> JsonObject:
    """Return `disruption` for a Provisioner."""
    reader, empty_seconds = (spec.read_mapping("consolidation", "enabled"), _read_seconds(spec, "ttlSecondsAfterEmpty"))
    is_enabled = None if reader is None else reader.read_boolean("enabled")
    if reader is not None:
        reader.refuse_unread_keys(fixes=FIXES_IN_CONSOLIDATION)
    path = spec.get_path("ttlSecondsAfterEmpty")
    if is_enabled and empty_seconds is not None:
        spec.remarks.add_refusal(path, "cannot be used with consolidation.enabled: true: remove one of the two")
    if is_enabled:
        spec.remarks.add_change(
            spec.get_path("consolidation"), "converted to consolidationPolicy: WhenEmptyOrUnderutilized"
        )
        return {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
    if empty_seconds is not None:
        if reader is not None and reader.has("enabled"):
            spec.remarks.add_change(reader.get_path("enabled"), "converted to consolidationPolicy: WhenEmpty")
        spec.remarks.add_change(
            path,
            f"converted to consolidationPolicy: WhenEmpty with consolidateAfter: {empty_seconds}s, "
            "counted from the last pod event",
        )
        return {"consolidationPolicy": "WhenEmpty", "consolidateAfter": f"{empty_seconds}s"}
    changed_path = spec.get_path("consolidation") if reader is not None else path
    spec.remarks.add_change(changed_path, "empty nodes were not removed: set consolidateAfter: Never")
    return {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}


def convert_beta_disruption(disruption_reader: MappingReader) -> JsonObject:
    """Return `disruption` for that of a NodePool v1beta1."""
    policy = disruption_reader.read_text("consolidationPolicy") or "WhenUnderutilized"
    consolidate_after, path = (
        read_duration(disruption_reader, "consolidateAfter"),
        disruption_reader.get_path("consolidateAfter"),
    )
    if policy not in _V1_POLICY_BY_BETA_POLICY:
        disruption_reader.remarks.add_refusal(
            disruption_reader.get_path("consolidationPolicy"), f"is {policy!r}: {_suggest_policy(policy)}"
        )
    elif policy == "WhenUnderutilized":
        disruption_reader.remarks.add_change(
            disruption_reader.get_path("consolidationPolicy"), "WhenUnderutilized renamed to WhenEmptyOrUnderutilized"
        )
        if consolidate_after and consolidate_after != "Never":
            disruption_reader.remarks.add_refusal(
                path, "is valid only with WhenEmpty: remove it, or write consolidationPolicy: WhenEmpty"
            )
    elif not consolidate_after:
        disruption_reader.remarks.add_refusal(path, "is missing: WhenEmpty needs it: write 30s, for example")
    disruption: JsonObject = {
        "consolidationPolicy": _V1_POLICY_BY_BETA_POLICY.get(policy, ""),
        "consolidateAfter": consolidate_after or "0s",
    }
    budgets = [_convert_budget(budget_reader) for budget_reader in disruption_reader.read_mappings("budgets")]
    return disruption | ({"budgets": budgets} if budgets else {})


def _suggest_policy(policy: str) -> str:
    """Return what to write instead of *policy*, which v1beta1 does not have."""
    if policy == _V1_POLICY_BY_BETA_POLICY["WhenUnderutilized"]:
        return "write WhenUnderutilized, or the object as karpenter.sh/v1, which has it"
    if policy.lower() in ("never", "none", "disabled"):
        return "write consolidationPolicy: WhenEmpty and consolidateAfter: Never"
    close = get_close_matches(
        policy.lower(), {known_policy.lower(): known_policy for known_policy in _V1_POLICY_BY_BETA_POLICY}, n=1
    )
    suggestion = next(
        (known_policy for known_policy in _V1_POLICY_BY_BETA_POLICY if [known_policy.lower()] == close), ""
    )
    return f"did you mean {suggestion}?" if suggestion else f"write one of {', '.join(_V1_POLICY_BY_BETA_POLICY)}"


def read_duration(part: MappingReader, field: str) -> str:
    """Return a duration, or "" if there is none; refuse a duration that no API server accepts."""
    text, path = part.read_text(field), part.get_path(field)
    if text and _DURATION_PATTERN.fullmatch(text) is None:
        example = suggest_duration(text) or "720h, 30s or Never"
        part.remarks.add_refusal(path, f"is {text!r}: {choose_fix(text, f'write {example}')}")
    return text


def _convert_budget(budget_reader: MappingReader) -> JsonObject:
    budget: JsonObject = {
        name: text for name in ("nodes", "schedule", "duration") if (text := budget_reader.read_text(name))
    }
    if ("schedule" in budget) != ("duration" in budget):
        present_field, missing_field = ("schedule", "duration") if "schedule" in budget else ("duration", "schedule")
        example = "8h" if missing_field == "duration" else '"0 9 * * mon-fri"'
        message = f"needs {missing_field}: add {missing_field}: {example}, or remove it"
        budget_reader.remarks.add_refusal(budget_reader.get_path(present_field), message)
    if reasons := budget_reader.read_texts("reasons"):
        budget["reasons"] = reasons
    budget_reader.refuse_unread_keys()
    return budget
