"""How long nodes live, and when they are removed: of a Provisioner, and of a NodePool v1beta1."""

import re
from difflib import get_close_matches
from typing import Any, Final

from cli.conversion.elsewhere import IN_CONSOLIDATION
from cli.conversion.parts import Part, remedy
from cli.conversion.remedies import hours

Object = dict[str, Any]
_POLICIES: Final = {"WhenUnderutilized": "WhenEmptyOrUnderutilized", "WhenEmpty": "WhenEmpty"}
_DURATION: Final = re.compile(r"(?:[0-9]+[smh])+|Never")


def _seconds(spec: Part, field: str) -> int | None:
    text = spec.holds(field) and str(spec.raw(field)).strip()
    if text and text[-1].isalpha() and (said := hours(text)).rstrip("hms").isdecimal():
        seconds = int(said[:-1]) * {"h": 3600, "m": 60, "s": 1}[said[-1]]
        spec.remarks.refuse(spec.at(field), f"is {text!r}, and seconds are counted here: write {seconds}")
        return None
    number = spec.number(field)
    if number is not None and number < 0:
        spec.remarks.refuse(spec.at(field), f"is {number}: write seconds, 0 or more")
    return number


def expiry(spec: Part) -> str:
    """Answer expireAfter of a pool for a Provisioner's ttlSecondsUntilExpired."""
    path, number = spec.at("ttlSecondsUntilExpired"), _seconds(spec, "ttlSecondsUntilExpired")
    if number is None:
        spec.remarks.changed(path, "was not there, so nodes did not grow old: expireAfter: Never (v1 would say 720h)")
        return "Never"
    if number == 0:
        spec.remarks.refuse(path, "is 0: nodes would expire before they are ready: write a time, or remove it")
    spec.remarks.changed(path, f"is template.spec.expireAfter: {number}s now; what is old goes, whatever budgets say")
    return f"{number}s"


def of_provisioner(spec: Part) -> Object:
    """Answer `disruption` for a Provisioner."""
    old, empty = spec.part("consolidation", "enabled"), _seconds(spec, "ttlSecondsAfterEmpty")
    enabled = None if old is None else old.flag("enabled")
    if old is not None:
        old.end(homes=IN_CONSOLIDATION)
    path = spec.at("ttlSecondsAfterEmpty")
    if enabled and empty is not None:
        spec.remarks.refuse(path, "stands beside consolidation.enabled: true, which was refused: remove one of them")
    if enabled:
        spec.remarks.changed(spec.at("consolidation"), "is consolidationPolicy: WhenEmptyOrUnderutilized now")
        return {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
    if empty is not None:
        if old is not None and old.has("enabled"):
            spec.remarks.changed(old.at("enabled"), "is consolidationPolicy: WhenEmpty now")
        spec.remarks.changed(
            path,
            f"is consolidationPolicy: WhenEmpty with consolidateAfter: {empty}s now, counted from the last pod event",
        )
        return {"consolidationPolicy": "WhenEmpty", "consolidateAfter": f"{empty}s"}
    where = spec.at("consolidation") if old is not None else path
    spec.remarks.changed(where, "nothing was removed for being empty: consolidateAfter: Never")
    return {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}


def of_beta(old: Part) -> Object:
    """Answer `disruption` for that of v1beta1."""
    policy = old.text("consolidationPolicy") or "WhenUnderutilized"
    after, path = duration(old, "consolidateAfter"), old.at("consolidateAfter")
    if policy not in _POLICIES:
        old.remarks.refuse(old.at("consolidationPolicy"), f"is {policy!r}: {_policy_like(policy)}")
    elif policy == "WhenUnderutilized":
        old.remarks.changed(old.at("consolidationPolicy"), "WhenUnderutilized is WhenEmptyOrUnderutilized now")
        if after and after != "Never":
            old.remarks.refuse(path, "went only with WhenEmpty: remove it, or write consolidationPolicy: WhenEmpty")
    elif not after:
        old.remarks.refuse(path, "is missing: WhenEmpty needs it: write 30s, for example")
    new: Object = {"consolidationPolicy": _POLICIES.get(policy, ""), "consolidateAfter": after or "0s"}
    budgets = [_budget(one) for one in old.parts("budgets")]
    return new | ({"budgets": budgets} if budgets else {})


def _policy_like(policy: str) -> str:
    """Answer what to write for *policy*, which v1beta1 has not."""
    if policy == _POLICIES["WhenUnderutilized"]:
        return "write WhenUnderutilized, or the whole as karpenter.sh/v1, which has it"
    if policy.lower() in ("never", "none", "disabled"):
        return "write consolidationPolicy: WhenEmpty and consolidateAfter: Never"
    close = get_close_matches(policy.lower(), {one.lower(): one for one in _POLICIES}, n=1)
    sure = next((one for one in _POLICIES if [one.lower()] == close), "")
    return f"did you mean {sure}?" if sure else f"write one of {', '.join(_POLICIES)}"


def duration(part: Part, field: str) -> str:
    """Answer a duration, "" if there is none; one that no server takes is refused."""
    text, path = part.text(field), part.at(field)
    if text and _DURATION.fullmatch(text) is None:
        example = hours(text) or "720h, 30s or Never"
        part.remarks.refuse(path, f"is {text!r}: {remedy(text, f'write {example}')}")
    return text


def _budget(one: Part) -> Object:
    new: Object = {name: text for name in ("nodes", "schedule", "duration") if (text := one.text(name))}
    if ("schedule" in new) != ("duration" in new):
        here, there = ("schedule", "duration") if "schedule" in new else ("duration", "schedule")
        example = "8h" if there == "duration" else '"0 9 * * mon-fri"'
        one.remarks.refuse(one.at(here), f"stands without {there}: write that too, {there}: {example}, or remove it")
    if reasons := one.texts("reasons"):
        new["reasons"] = reasons
    one.end()
    return new
