"""`joiner drift`: which nodes have drifted, from what to what, and how to call one drifted that has not."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from cli.telling import tell

if TYPE_CHECKING:
    from shared.disruption.drifts import Drift
    from shared.model.cluster import Cluster

DESCRIPTION: Final = """Say whether a node has drifted: whether it differs from what its NodePool and its EC2NodeClass
ask for today, in what, from what to what, and since when the functions know. Without NODE all that have drifted are
told. Files are read as they are; with --context or --kubeconfig a cluster is only listed, never written to."""
EXAMPLES: Final = """examples:
  joiner drift                                   all nodes of your current cluster that have drifted
  joiner drift ip-10-0-64-5 --context prod       by the name of Node, NodeClaim or instance; up to its first dot
  joiner drift -f cluster.json --instance-types catalogue.json -o json | jq '.[] | select(.drifted) | .node'
  joiner drift ip-10-0-64-5 --mark | sh                  have it replaced, as if it had drifted, within budgets
  joiner drift ip-10-0-64-5 --unmark | sh                take that back

--mark and --unmark print the kubectl command and run nothing. Without a catalogue (--instance-types, or
$JOINER_BUCKET_NAME for a live cluster) images are compared whatever instance type they are for, and a type that is not
sold any more is not noticed; instances are not looked at: subnets and security groups drift as the functions saw them.

-o json and yaml: a list of node, nodeClaim, nodePool, drifted (true, false), reason, was, wanted, since, known (whether
the functions have noticed yet).

exit codes: 0 answered, 1 something could not be read or there is no such node, 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]
NAMED: Final = 5


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add what the command says of itself, and its arguments."""
    from cli.sources import add_sources  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument(
        "node", nargs="?", default="", metavar="NODE", help="which one (default: all that have drifted)"
    )
    add_sources(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--mark", action="store_true", help="print how to have NODE replaced")
    how.add_argument("--unmark", action="store_true", help="print how to take that back")
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print every node that has drifted")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(chosen: argparse.Namespace) -> int:
    """Read, compare, print; answer 1 if something could not be read."""
    if (chosen.mark or chosen.unmark) and not chosen.node:
        chosen.usage("which NODE is to be marked?")
    from cli.encoding import encoded  # noqa: PLC0415 - --help needs none of it
    from cli.files import InputError  # noqa: PLC0415
    from cli.look import current_unless_named, look_and_price  # noqa: PLC0415

    is_live = current_unless_named(chosen)
    try:
        looked, cluster = look_and_price(chosen, is_live=is_live, now=datetime.now(UTC))
        found = _found(cluster, chosen.node)
    except InputError as error:
        return tell("drift", [str(error)])
    if chosen.mark or chosen.unmark:
        sys.stdout.writelines(f"{line}\n" for line in _commands(found, chosen))
    elif chosen.output == "table":
        sys.stdout.writelines(f"{line}\n" for line in _lines(found, chosen))
    else:
        sys.stdout.write(encoded([_document(one) for one in found], chosen.output))
    return tell("drift", [*looked.told, *(looked.placed(one) for one in cluster.problems)])


def _found(cluster: "Cluster", name: str) -> "list[Drift]":
    """Answer what *name* is, or all.

    Raises:
        InputError: there is no such node, or it is not ours.
    """
    from cli.files import InputError  # noqa: PLC0415
    from shared.disruption.drifts import drifts  # noqa: PLC0415

    every = list(drifts(cluster))
    if not name:
        return every
    found = [one for one in every if name in _names(one) or name in {part.partition(".")[0] for part in _names(one)}]
    if len(found) == 1:
        return found
    if found:
        raise InputError(f"{name}: there are several: {', '.join(_names(one)[0] for one in found)}")
    known = sorted(_names(one)[0] for one in every)
    told = f"known are {', '.join(known[:NAMED])}{', …' if len(known) > NAMED else ''}" if known else "there are none"
    raise InputError(f"{name}: no node of a NodePool of ours, or it is going; {told}")


def _names(one: "Drift") -> tuple[str, ...]:
    claim = one.one.claim
    return tuple(filter(None, (claim.node_name, claim.name, claim.instance_id)))


def _commands(found: "Iterable[Drift]", chosen: argparse.Namespace) -> Iterator[str]:
    from shared.model.labels import VOLUNTARY_DISRUPTION  # noqa: PLC0415

    where = f" --context {chosen.context}" if chosen.context else ""
    where += f" --kubeconfig {chosen.kubeconfig}" if chosen.kubeconfig else ""
    what = f"{VOLUNTARY_DISRUPTION}=drifted" if chosen.mark else f"{VOLUNTARY_DISRUPTION}-"
    for one in found:
        claim = one.one.claim
        yield f"kubectl{where} annotate --overwrite nodeclaim {claim.name} {what}"
        if not chosen.mark and claim.node_name:
            yield f"kubectl{where} annotate --overwrite node {claim.node_name} {what}"


def _document(one: "Drift") -> dict[str, Any]:
    from cli.differences import difference  # noqa: PLC0415
    from shared.model.objects import condition  # noqa: PLC0415
    from shared.model.units import instant_text  # noqa: PLC0415

    claim = one.one.claim
    known = condition(claim.conditions, "Drifted")
    noticed = known.reason if known is not None and known.status == "True" else ""
    reason = noticed if one.reason is None else one.reason
    was, wanted = difference(one.one, reason)
    since = known.since if known is not None and noticed else None
    return {
        "node": claim.node_name,
        "nodeClaim": claim.name,
        "nodePool": one.one.pool.name,
        "drifted": bool(reason),
        "reason": reason,
        "was": was,
        "wanted": wanted,
        "since": None if since is None else instant_text(since),
        "known": reason == noticed,
    }


def _lines(found: "Iterable[Drift]", chosen: argparse.Namespace) -> Iterator[str]:
    """Iterate over nodes that have drifted, of many the first, and what they come to; or over the one that is meant."""
    from cli.tables import MOST  # noqa: PLC0415 - --help needs none of it
    from cli.text import count  # noqa: PLC0415

    documents = [_document(one) for one in found]
    if chosen.node:
        yield from map(_line, documents)
        return
    drifted = [one for one in documents if one["drifted"]]
    yield from map(_line, drifted if chosen.is_whole else drifted[:MOST])
    if len(drifted) > MOST and not chosen.is_whole:
        yield f"… and {count(len(drifted) - MOST, 'more node')} (--all shows them)"
    kinds = sorted(Counter(one["reason"] for one in drifted).items(), key=lambda one: (-one[1], one[0]))
    by_kind = f": {', '.join(f'{number} {kind}' for kind, number in kinds)}" if len(drifted) > 1 else ""
    yield f"{len(drifted)} of {count(len(documents), 'node')} have drifted{by_kind}"


def _line(one: dict[str, Any]) -> str:
    name = one["node"] or one["nodeClaim"]
    if not one["drifted"]:
        return f"{name} has not drifted"
    since = f"since {one['since']}" if one["known"] and one["since"] else "the next sweep will notice"
    return f"{name}: {one['reason']}: {one['was']} -> {one['wanted']} ({since})"
