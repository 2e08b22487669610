"""Calls of lifecycle for many terminating nodes, against an API server on loopback that takes its time.

``python -m tests.benchmarks.bench_parallel_calls 5000``: each node has two pods. The first run taints and deletes the
Nodes, the second evicts the pods, and the third terminates the instances. For each run: calls, seconds and calls per
second with parallel calls, and the same for a twentieth of the nodes without. ``--latency-ms 10`` is the time until the
server responds; it is a process of its own, and accepts every write.
"""

import asyncio
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Final

import msgspec

from shared.apply.executor import apply_actions
from shared.decide.common.events import sort_events_last
from shared.decide.lifecycle.reconcile import decide_lifecycle
from shared.kubernetes.client import MAX_CONNECTIONS, KubeClient
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Condition
from shared.model.decisions.action import Action, TerminateInstances
from shared.state.cluster_state import ClusterState
from shared.state.node_claim_state import map_nodes_to_claims
from tests.support import lifecycle_cases as cases
from tests.support.actions_world import Outside

SEQUENTIAL_SHARE: Final = 20
"""The sequential measurement has one node for so many of the parallel one."""
RESPONSE_BODY: Final = b'{"kind":"Status","metadata":{"resourceVersion":"1"}}'
RESPONSE: Final = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(RESPONSE_BODY), RESPONSE_BODY)
DRAINING_SINCE: Final = cases.get_time_before(seconds=30)


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One run of actions."""

    nodes: int
    calls: int
    seconds: float
    processor_seconds: float

    def describe(self) -> str:
        return (
            f"{self.nodes} nodes, {self.calls} calls in {self.seconds:.1f} s "
            f"({self.calls / self.seconds:.0f}/s, {self.processor_seconds / self.calls * 1e3:.2f} ms of CPU time each)"
        )


def build_cluster(node_count: int, run: str) -> ClusterSnapshot:
    """Return *node_count* terminating nodes before the *run* taint, evict or terminate."""
    names = [f"{number:05}" for number in range(node_count)]
    draining = Condition(type="Drained", status="Unknown", reason="Draining", since=DRAINING_SINCE)
    conditions = cases.make_true_conditions(*cases.STAGES) + (() if run == "taint" else (draining,))
    pods = tuple(
        cases.make_pod(f"{app}-{name}", on=name) for name in names for app in (() if run == "terminate" else ("a", "b"))
    )
    is_tainted = run != "taint"
    deleted = cases.get_time_before(seconds=30)
    return cases.make_cluster(
        node_claims=tuple(cases.make_claim(name, conditions=conditions, deleted=deleted) for name in names),
        nodes=tuple(cases.make_node(name, going=is_tainted, deleted=deleted if is_tainted else None) for name in names),
        instances=tuple(cases.make_instance(name) for name in names),
        pods=pods,
    )


def measure(cluster: ClusterSnapshot, endpoint: str, max_parallel_calls: int) -> Measurement:
    """Perform what lifecycle decides about *cluster*; calls to AWS and messages take no time."""
    actions = sort_events_last(decide_lifecycle(ClusterState(cluster)))
    kube_actions: tuple[Action, ...] = tuple(action for action in actions if not isinstance(action, TerminateInstances))
    kube = KubeClient(endpoint)
    world = msgspec.structs.replace(
        Outside().build_world(), kube=kube, memory={}, max_parallel_calls=max_parallel_calls
    )
    began, processor_began = perf_counter(), process_time()
    outcomes = apply_actions(kube_actions, world, claim_by_node=map_nodes_to_claims(cluster))
    seconds, processor_seconds = perf_counter() - began, process_time() - processor_began
    assert {outcome.result for outcome in outcomes} == {"done"}
    kube.close_idle_connections()
    return Measurement(
        nodes=len(cluster.nodes), calls=len(outcomes), seconds=seconds, processor_seconds=processor_seconds
    )


@contextmanager
def serve(latency: timedelta) -> Iterator[str]:
    """Run the server in a process of its own while the context lasts; yield its endpoint."""
    receiver, sender = get_context("spawn").Pipe(duplex=False)
    process = get_context("spawn").Process(target=_run_server, args=(latency, sender), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}"
    finally:
        process.terminate()
        process.join()


def _run_server(latency: timedelta, sender: Connection) -> None:
    asyncio.run(_serve(latency.total_seconds(), sender))


async def _serve(latency_seconds: float, sender: Connection) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in count():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(lengths[0].partition(b":")[2]) if lengths else 0)
            await asyncio.sleep(latency_seconds)
            writer.write(RESPONSE)

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    sender.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def main() -> None:
    """Print the measurements."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("nodes", type=int)
    parser.add_argument("--latency-ms", type=float, default=5)
    arguments = parser.parse_args()
    with serve(timedelta(milliseconds=arguments.latency_ms)) as endpoint:
        for run in ("taint", "evict", "terminate"):
            sequential = measure(build_cluster(max(arguments.nodes // SEQUENTIAL_SHARE, 1), run), endpoint, 1)
            parallel = measure(build_cluster(arguments.nodes, run), endpoint, MAX_CONNECTIONS)
            ratio = parallel.calls / parallel.seconds / (sequential.calls / sequential.seconds)
            sys.stdout.write(f"{run}, one after the other: {sequential.describe()}\n")
            sys.stdout.write(f"{run}, parallel: {parallel.describe()}, {ratio:.1f} times as fast\n")


if __name__ == "__main__":
    main()
