"""The drifted nodes: as text, as documents, and as the kubectl commands that request or cancel a replacement."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from cli.drift.differences import describe_difference
from cli.planning.cluster_source import default_to_current_context, read_priced_input
from cli.planning.table import MAX_ROWS
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors
from shared.decide.disruption.drift.drifted_condition import ClaimDrift, find_drifts
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.core.labels import VOLUNTARY_DISRUPTION
from shared.model.core.metadata import find_condition
from shared.model.core.units import format_instant
from shared.state.cluster_state import ClusterState

MAX_SUGGESTED_NAMES: Final = 5


def print_drift(args: argparse.Namespace) -> int:
    """Read, compare, print; return 1 if an input cannot be read."""
    is_live = default_to_current_context(args)
    try:
        cluster_input, cluster = read_priced_input(args, is_live=is_live, now=datetime.now(UTC))
        claim_drifts = _select_drifts(cluster, args.node)
    except InputError as error:
        return print_errors("drift", [str(error)])
    if args.output != "table" and not (args.mark or args.unmark):
        sys.stdout.write(encode_output(list(map(_build_document, claim_drifts)), args.output))
    else:
        render_lines = _build_kubectl_commands if args.mark or args.unmark else _render_lines
        sys.stdout.writelines(f"{line}\n" for line in render_lines(claim_drifts, args))
    return print_errors("drift", [*cluster_input.read_errors, *map(cluster_input.describe_problem, cluster.problems)])


def _select_drifts(cluster: ClusterSnapshot, name: str) -> list[ClaimDrift]:
    """Return the node that *name* identifies, or all nodes if *name* is empty."""
    all_drifts = list(find_drifts(ClusterState(cluster)))
    matching_drifts = [
        claim_drift
        for claim_drift in all_drifts
        if name in ("", *(names := _get_names(claim_drift)), *(part.partition(".")[0] for part in names))
    ]
    if not name or len(matching_drifts) == 1:
        return matching_drifts
    if matching_drifts:
        several_names = ", ".join(_get_names(claim_drift)[0] for claim_drift in matching_drifts)
        raise InputError(f"{name} is ambiguous: {several_names}")
    node_names = sorted(_get_names(claim_drift)[0] for claim_drift in all_drifts)
    hint = f"the cluster has {join_names(node_names, MAX_SUGGESTED_NAMES)}" if node_names else "no NodePool has nodes"
    raise InputError(f"{name} not found; {hint}")


def _get_names(claim_drift: ClaimDrift) -> tuple[str, ...]:
    node_claim = claim_drift.inputs.claim
    return tuple(filter(None, (node_claim.node_name, node_claim.name, node_claim.instance_id)))


def _build_kubectl_commands(claim_drifts: Iterable[ClaimDrift], args: argparse.Namespace) -> Iterator[str]:
    kubectl_options = f" --context {args.context}" if args.context else ""
    kubectl_options += f" --kubeconfig {args.kubeconfig}" if args.kubeconfig else ""
    annotation = f"{VOLUNTARY_DISRUPTION}=drifted" if args.mark else f"{VOLUNTARY_DISRUPTION}-"
    for claim_drift in claim_drifts:
        node_claim = claim_drift.inputs.claim
        yield f"kubectl{kubectl_options} annotate --overwrite nodeclaim {node_claim.name} {annotation}"
        if not args.mark and node_claim.node_name:
            yield f"kubectl{kubectl_options} annotate --overwrite node {node_claim.node_name} {annotation}"


def _build_document(claim_drift: ClaimDrift) -> dict[str, Any]:
    node_claim = claim_drift.inputs.claim
    drifted_condition = find_condition(node_claim.conditions, "Drifted")
    is_recorded = drifted_condition is not None and drifted_condition.status == "True"
    recorded_reason = drifted_condition.reason if drifted_condition is not None and is_recorded else ""
    reason = recorded_reason if claim_drift.reason is None else claim_drift.reason
    actual_state, required_state = describe_difference(claim_drift.inputs, reason)
    since = drifted_condition.since if drifted_condition is not None and recorded_reason else None
    return {
        "node": node_claim.node_name,
        "nodeClaim": node_claim.name,
        "nodePool": claim_drift.inputs.pool.name,
        "drifted": bool(reason),
        "reason": reason,
        "actual": actual_state,
        "required": required_state,
        "since": None if since is None else format_instant(since),
        "conditionSet": reason == recorded_reason,
    }


def _render_lines(claim_drifts: Iterable[ClaimDrift], args: argparse.Namespace) -> Iterator[str]:
    """Yield the drifted nodes, the first ones if there are many, and the totals; or only the selected node."""
    documents = [_build_document(claim_drift) for claim_drift in claim_drifts]
    if args.node:
        yield from map(_render_line, documents)
        return
    drifted = [document for document in documents if document["drifted"]]
    yield from map(_render_line, drifted if args.is_whole else drifted[:MAX_ROWS])
    if len(drifted) > MAX_ROWS and not args.is_whole:
        yield f"… and {format_count(len(drifted) - MAX_ROWS, 'more node')} (--all shows them)"
    counts = Counter(document["reason"] for document in drifted)
    kinds = sorted(counts.items(), key=lambda reason_count: (-reason_count[1], reason_count[0]))
    by_kind = f": {', '.join(f'{number} {kind}' for kind, number in kinds)}" if len(drifted) > 1 else ""
    yield f"{len(drifted)} of {format_count(len(documents), 'node')} have drifted{by_kind}"


def _render_line(document: dict[str, Any]) -> str:
    name = document["node"] or document["nodeClaim"]
    if not document["drifted"]:
        return f"{name} has not drifted"
    since = (
        f"since {document['since']}"
        if document["conditionSet"] and document["since"]
        else "not recorded in status.conditions yet"
    )
    return f"{name}: {document['reason']}: {document['actual']} -> {document['required']} ({since})"
