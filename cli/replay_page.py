"""A decision that was made again: what it was, what it would be, in what they differ; for people and for programs."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import msgspec

from cli.explain_journals import Cycle
from cli.replay_bill import bill
from cli.replay_changes import Changed
from cli.replay_differences import SAYING, Compared, Difference
from cli.replay_words import said
from cli.replayed import Decision
from cli.text import Palette, count, folded, some
from shared.model.action import Action, LaunchInstances, MarkUnavailable
from shared.model.cluster import Cluster
from shared.report.snapshots import Snapshot

MOST: Final = 20
NAMED: Final = 3
_INDENT: Final = "  "
_SIGNS: Final = {"then": ("-", "red"), "now": ("+", "green"), "changed": ("~", "yellow")}


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about it."""

    cycle: Cycle
    snapshot: Snapshot
    changed: Changed
    compared: Compared
    code: str
    """Of this program."""
    notes: tuple[str, ...] = ()

    @property
    def is_other_code(self) -> bool:
        """Whether other code decided then."""
        return self.cycle.entry.code != self.code


def page(one: Replayed, palette: Palette, width: int | None, *, is_whole: bool) -> str:
    """Answer what a person reads."""
    most = None if is_whole else MOST
    lines = [*_head(one, palette, width), ""]
    lines += [*_decision("DECIDED THEN", one.compared.then, palette, width, most), ""]
    if not one.compared.is_same:
        lines += [*_decision("WOULD BE DECIDED NOW", one.compared.now, palette, width, most), ""]
        lines += [*_differences(one.compared, palette, width, most), ""]
    lines += list(_verdict(one, palette, width))
    return "\n".join(lines) + "\n"


def _head(one: Replayed, palette: Palette, width: int | None) -> Iterator[str]:
    entry = one.cycle.entry
    yield palette.paint("bold", f"{entry.function} {instant(entry.at)} UTC")
    rows = [
        ("cycle", one.cycle.key),
        ("woken by", entry.trigger),
        ("decided from", _seen(one.changed.cluster, entry.function)),
    ]
    rows += [("catalogue", one.snapshot.catalogue or "none")]
    rows += [
        ("code", f"{entry.code or 'unknown'} then, {one.code} now" if one.is_other_code else f"{one.code}, the same")
    ]
    rows += [("changed", what) for what in one.changed.what]
    rows += [("note", note) for note in (*one.changed.notes, *one.notes)]
    rows += [("new nodes", words)] if (words := _money(one)) else []
    for title, words in rows:
        first, *rest = folded(words, width, " " * 14, "")
        yield f"{title:<14}{first.lstrip()}"
        yield from rest


def _seen(cluster: Cluster, function: str) -> str:
    if function == "catalog":
        return f"{count(len(cluster.node_classes), 'EC2NodeClass')}; as seen at {instant(cluster.taken_at)}"
    waiting = sum(pod.is_provisionable() for pod in cluster.pods)
    parts = (
        f"{count(len(cluster.pods), 'pod')}, {waiting} without a node",
        count(len(cluster.nodes), "node"),
        count(len(cluster.node_pools), "NodePool"),
        f"as seen at {instant(cluster.taken_at)}",
    )
    return "; ".join(parts)


def _money(one: Replayed) -> str:
    """Say what the nodes that are asked for cost, each at its cheapest offering."""
    then, now = (bill(each, one.changed.cluster) for each in (one.compared.then, one.compared.now))
    if then == now:
        return f"{then[0]} for ${then[1]:.4f} per hour" if then[0] else ""
    return f"{then[0]} for ${then[1]:.4f} per hour then, {now[0]} for ${now[1]:.4f} now"


def _decision(title: str, decided: Decision, palette: Palette, width: int | None, most: int | None) -> Iterator[str]:
    yield palette.paint("bold", title)
    deeds = [one for one in decided.actions if not isinstance(one, SAYING)]
    words = len(decided.actions) - len(deeds)
    lines = _alike(deeds)
    for what, why in lines[:most]:
        yield from folded(f"{what}{f': {why}' if why else ''}", width, _INDENT)
    yield from _rest(len(lines), most, "action", palette)
    if not deeds:
        yield f"{_INDENT}nothing is done"
    yield palette.paint(
        "dim", f"{_INDENT}and {count(words, 'event')} or wake-ups, {count(len(decided.notes), 'verdict')}"
    )


def _alike(deeds: Iterable[Action]) -> list[tuple[str, str]]:
    """Say what is done; offerings that are marked for one reason after each other are one line."""
    lines: list[tuple[str, str]] = []
    for (is_mark, why), some_ in groupby(deeds, key=lambda one: (isinstance(one, MarkUnavailable), said(one)[1])):
        words = [said(one) for one in some_]
        if is_mark and len(words) > 1:
            names = [what.removesuffix(" marked") for what, _ in words]
            lines.append((f"{count(len(names), 'offering')} marked: {some(names, NAMED)}", why))
        else:
            lines += words
    return lines


def _differences(both: Compared, palette: Palette, width: int | None, most: int | None) -> Iterator[str]:
    yield palette.paint("bold", "DIFFERENCES")
    if both.is_reordered:
        yield f"{_INDENT}the same actions and verdicts, in another order"
    deeds = [one for one in both.actions if most is None or not one.is_said]
    left_out = len(both.actions) - len(deeds)
    lines = [(one, (one.what,)) for one in deeds] + _grouped(both.notes)
    for one, names in lines[:most]:
        yield from _difference(one, names, palette, width, None if most is None else NAMED)
    yield from _rest(len(lines), most, "difference", palette)
    if left_out:
        yield palette.paint("dim", f"{_INDENT}and {count(left_out, 'other event')} or wake-ups (--all shows them)")


def _grouped(notes: Iterable[Difference]) -> list[tuple[Difference, tuple[str, ...]]]:
    """Answer verdicts with the names of all of whom they are the same."""
    found: dict[tuple[str, str, str], list[Difference]] = {}
    for one in notes:
        found.setdefault((one.how, one.then, one.now), []).append(one)
    return [(same[0], tuple(one.what for one in same)) for same in found.values()]


def _difference(
    one: Difference, names: Sequence[str], palette: Palette, width: int | None, most: int | None
) -> Iterator[str]:
    sign, colour = _SIGNS[one.how]
    what = f"{sign} {_together(names, most)}"
    if one.how != "changed":
        why = one.then or one.now
        what = f"{what}{f': {why}' if why else ''}"
    yield from (palette.paint(colour, line) for line in folded(what, width, _INDENT))
    if one.how == "changed":
        yield from (palette.paint("red", line) for line in folded(f"then: {one.then}", width, _INDENT * 3))
        yield from (palette.paint("green", line) for line in folded(f"now: {one.now}", width, _INDENT * 3))


def _together(names: Sequence[str], most: int | None) -> str:
    """Answer names of one kind, as ``3 Pods: a, b and 1 more``."""
    if len(names) == 1:
        return names[0]
    kind = names[0].partition(" ")[0]
    return f"{count(len(names), kind)}: {some([one.partition(' ')[2] for one in names], most)}"


def _rest(number: int, most: int | None, what: str, palette: Palette) -> Iterator[str]:
    if most is not None and number > most:
        yield palette.paint("dim", f"{_INDENT}… and {count(number - most, f'more {what}')} (--all shows them)")


def _verdict(one: Replayed, palette: Palette, width: int | None) -> Iterator[str]:
    compared, cut_ = one.compared, one.snapshot.made.cut
    if compared.is_same:
        numbers = f"{count(len(compared.now.actions), 'action')}, {count(len(compared.now.notes), 'verdict')}"
        words, colour = f"the same decision, byte for byte: {numbers}", "green"
    else:
        numbers = f"{count(len(compared.actions), 'action')} and {count(len(compared.notes), 'verdict')}"
        words, colour = f"another decision: {numbers} differ", "yellow"
    yield from (palette.paint(colour, line) for line in folded(words, width, "", ""))
    if cut_ and not compared.is_same:
        yield from folded(f"it need not come out the same: {cut_}", width, "", "")
    for words in _limits(one):
        yield from folded(words, width, "", "")


def _limits(one: Replayed) -> Iterator[str]:
    """Say what was not decided again, or not compared."""
    entry = one.cycle.entry
    launches = any(isinstance(action, LaunchInstances) for action in one.compared.then.actions)
    if one.compared.is_unanswered:
        yield "EC2 would be asked for something else: what it would have said is not known, so that is not compared"
    if launches:
        yield "of launch templates all but user data is compared: that is not kept"
    if entry.function == "provision" and one.snapshot.given.rounds is None:
        yield "launches are not decided again: this snapshot is of a version that did not keep what they saw"
    if entry.function == "catalog" and any(note.kind == "Catalogue" for note in entry.notes):
        yield "the catalogue that was made is not made again: what EC2 sells, and for how much, is not kept besides it"


def document(one: Replayed) -> dict[str, Any]:
    """Answer what a program reads: stable keys, instants in UTC."""
    entry, compared = one.cycle.entry, one.compared
    return {
        "cycle": one.cycle.key,
        "function": entry.function,
        "at": entry.at,
        "trigger": entry.trigger,
        "snapshot": entry.snapshot,
        "catalogue": one.snapshot.catalogue,
        "code": {"then": entry.code, "now": one.code},
        "changed": list(one.changed.what),
        "notes": [*one.changed.notes, *one.notes],
        "limits": list(_limits(one)),
        "same": compared.is_same,
        "reordered": compared.is_reordered,
        "cut": one.snapshot.made.cut,
        "then": _decided(compared.then, one.changed.cluster),
        "now": _decided(compared.now, one.changed.cluster),
        "differences": [
            *_told("action", compared.actions),
            *_told("verdict", compared.notes),
        ],
    }


def _decided(one: Decision, cluster: Cluster) -> dict[str, Any]:
    nodes, price = bill(one, cluster)
    return {
        "newNodes": nodes,
        "usdPerHour": round(price, 9),
        "actions": list(one.actions),
        "verdicts": list(one.notes),
    }


def _told(of: str, differences: Iterable[Difference]) -> Iterator[dict[str, str]]:
    for one in differences:
        yield {"of": of, "how": one.how, "what": one.what, "then": one.then, "now": one.now}


def instant(at: datetime) -> str:
    """Answer *at* to the second, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
