"""`joiner drift`: which nodes have drifted and how, and how to request or cancel a replacement."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from cli.terminal.stderr import print_errors

if TYPE_CHECKING:
    from shared.decide.disruption.drift.drifted_condition import ClaimDrift
    from shared.model.cluster import ClusterSnapshot

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
MAX_SUGGESTED_NAMES: Final = 5


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    from cli.planning.arguments import add_sources  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.add_argument(
        "node", nargs="?", default="", metavar="NODE", help="which one (default: all that have drifted)"
    )
    add_sources(parser)
    mark_group = parser.add_mutually_exclusive_group()
    mark_group.add_argument("--mark", action="store_true", help="print how to have NODE replaced")
    mark_group.add_argument("--unmark", action="store_true", help="print how to take that back")
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print every node that has drifted")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Read, compare, print; return 1 if an input cannot be read."""
    if (args.mark or args.unmark) and not args.node:
        args.usage("which NODE is to be marked?")
    from cli.planning.cluster_source import default_to_current_context, read_priced_input  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415 - --help needs none of it

    is_live = default_to_current_context(args)
    try:
        cluster_input, cluster = read_priced_input(args, is_live=is_live, now=datetime.now(UTC))
        claim_drifts = _select_drifts(cluster, args.node)
    except InputError as error:
        return print_errors("drift", [str(error)])
    if args.mark or args.unmark:
        sys.stdout.writelines(f"{line}\n" for line in _build_kubectl_commands(claim_drifts, args))
    elif args.output == "table":
        sys.stdout.writelines(f"{line}\n" for line in _render_lines(claim_drifts, args))
    else:
        sys.stdout.write(encode_output([_build_document(claim_drift) for claim_drift in claim_drifts], args.output))
    return print_errors(
        "drift",
        [*cluster_input.read_errors, *(cluster_input.describe_problem(problem) for problem in cluster.problems)],
    )


def _select_drifts(cluster: "ClusterSnapshot", name: str) -> "list[ClaimDrift]":
    """Return the node that *name* identifies, or all nodes if *name* is empty.

    Raises:
        InputError: The node does not exist, or does not belong to Joiner.
    """
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from shared.decide.disruption.drift.drifted_condition import find_drifts  # noqa: PLC0415
    from shared.state.cluster_state import ClusterState  # noqa: PLC0415

    all_drifts = list(find_drifts(ClusterState(cluster)))
    if not name:
        return all_drifts
    matching_drifts = [
        claim_drift
        for claim_drift in all_drifts
        if name in _get_names(claim_drift) or name in {part.partition(".")[0] for part in _get_names(claim_drift)}
    ]
    if len(matching_drifts) == 1:
        return matching_drifts
    if matching_drifts:
        raise InputError(
            f"{name}: there are several: {', '.join(_get_names(claim_drift)[0] for claim_drift in matching_drifts)}"
        )
    node_names = sorted(_get_names(claim_drift)[0] for claim_drift in all_drifts)
    ellipsis = ", …" if len(node_names) > MAX_SUGGESTED_NAMES else ""
    hint = f"known are {', '.join(node_names[:MAX_SUGGESTED_NAMES])}{ellipsis}" if node_names else "there are none"
    raise InputError(f"{name}: no node of a NodePool of ours, or it is going; {hint}")


def _get_names(claim_drift: "ClaimDrift") -> tuple[str, ...]:
    node_claim = claim_drift.inputs.claim
    return tuple(filter(None, (node_claim.node_name, node_claim.name, node_claim.instance_id)))


def _build_kubectl_commands(claim_drifts: "Iterable[ClaimDrift]", args: argparse.Namespace) -> Iterator[str]:
    from shared.model.core.labels import VOLUNTARY_DISRUPTION  # noqa: PLC0415

    kubectl_options = f" --context {args.context}" if args.context else ""
    kubectl_options += f" --kubeconfig {args.kubeconfig}" if args.kubeconfig else ""
    annotation = f"{VOLUNTARY_DISRUPTION}=drifted" if args.mark else f"{VOLUNTARY_DISRUPTION}-"
    for claim_drift in claim_drifts:
        node_claim = claim_drift.inputs.claim
        yield f"kubectl{kubectl_options} annotate --overwrite nodeclaim {node_claim.name} {annotation}"
        if not args.mark and node_claim.node_name:
            yield f"kubectl{kubectl_options} annotate --overwrite node {node_claim.node_name} {annotation}"


def _build_document(claim_drift: "ClaimDrift") -> dict[str, Any]:
    from cli.drift.differences import describe_difference  # noqa: PLC0415
    from shared.model.core.metadata import find_condition  # noqa: PLC0415
    from shared.model.core.units import format_instant  # noqa: PLC0415

    node_claim = claim_drift.inputs.claim
    drifted_condition = find_condition(node_claim.conditions, "Drifted")
    recorded_reason = (
        drifted_condition.reason if drifted_condition is not None and drifted_condition.status == "True" else ""
    )
    reason = recorded_reason if claim_drift.reason is None else claim_drift.reason
    actual_state, required_state = describe_difference(claim_drift.inputs, reason)
    since = drifted_condition.since if drifted_condition is not None and recorded_reason else None
    return {
        "node": node_claim.node_name,
        "nodeClaim": node_claim.name,
        "nodePool": claim_drift.inputs.pool.name,
        "drifted": bool(reason),
        "reason": reason,
        "was": actual_state,
        "wanted": required_state,
        "since": None if since is None else format_instant(since),
        "known": reason == recorded_reason,
    }


def _render_lines(claim_drifts: "Iterable[ClaimDrift]", args: argparse.Namespace) -> Iterator[str]:
    """Yield the drifted nodes, the first ones if there are many, and the totals; or only the selected node."""
    from cli.planning.table import MAX_ROWS  # noqa: PLC0415 - --help needs none of it
    from shared.model.core.formatting import format_count  # noqa: PLC0415

    documents = [_build_document(claim_drift) for claim_drift in claim_drifts]
    if args.node:
        yield from map(_render_line, documents)
        return
    drifted = [document for document in documents if document["drifted"]]
    yield from map(_render_line, drifted if args.is_whole else drifted[:MAX_ROWS])
    if len(drifted) > MAX_ROWS and not args.is_whole:
        yield f"… and {format_count(len(drifted) - MAX_ROWS, 'more node')} (--all shows them)"
    kinds = sorted(
        Counter(document["reason"] for document in drifted).items(),
        key=lambda reason_count: (-reason_count[1], reason_count[0]),
    )
    by_kind = f": {', '.join(f'{number} {kind}' for kind, number in kinds)}" if len(drifted) > 1 else ""
    yield f"{len(drifted)} of {format_count(len(documents), 'node')} have drifted{by_kind}"


def _render_line(document: dict[str, Any]) -> str:
    name = document["node"] or document["nodeClaim"]
    if not document["drifted"]:
        return f"{name} has not drifted"
    since = f"since {document['since']}" if document["known"] and document["since"] else "the next sweep will notice"
    return f"{name}: {document['reason']}: {document['was']} -> {document['wanted']} ({since})"
