"""Cost of a snapshot: requests and bytes at the client's sockets, processor seconds, memory, server metrics."""

import re
import ssl
import struct
from base64 import b64decode
from collections.abc import Iterator
from os import sysconf
from pathlib import Path
from socket import IPPROTO_TCP, TCP_INFO
from time import perf_counter, process_time
from typing import Any, ClassVar, Final
from urllib.request import Request, urlopen

import msgspec
from urllib3 import BaseHTTPResponse, HTTPSConnectionPool
from urllib3.connection import HTTPSConnection

from shared.kubernetes.client import KubeClient
from shared.kubernetes.raw_api_client import RawApiClient

_BYTES_RECEIVED: Final = struct.Struct("=128xQ")
"""Layout of tcpi_bytes_received in Linux' struct tcp_info."""
_TICKS_PER_SECOND: Final = sysconf("SC_CLK_TCK")
_SAMPLE: Final = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_DISPATCHED: Final = "apiserver_flowcontrol_dispatched_requests_total"
_REJECTED: Final = "apiserver_flowcontrol_rejected_requests_total"
_WAITED: Final = "apiserver_flowcontrol_request_wait_duration_seconds_sum"
_SEATS: Final = "apiserver_flowcontrol_work_estimated_seats_sum"


class Cost(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The cost of one snapshot; bytes as they came over the wire, with TLS.

    *peak_mib* is this process's peak so far.
    """

    look: str
    requests: int
    bytes_received: int
    wall_ms: float
    own_cpu_ms: float
    server_cpu_ms: float
    peak_mib: float


class Flow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What API Priority and Fairness did with requests of one flow schema."""

    flow_schema: str
    priority_level: str
    dispatched: int
    rejected: int
    waited_ms: float
    seats: float
    """Seats taken at once by one request, on average."""


class _Connection(HTTPSConnection):
    """A connection that counts the bytes it received, also before it is closed."""

    closed_bytes: ClassVar[int] = 0
    open_connections: ClassVar[set["_Connection"]] = set()

    def connect(self) -> None:
        super().connect()
        self.open_connections.add(self)

    def count_received_bytes(self) -> int:
        if self.sock is None:
            return 0
        return int(_BYTES_RECEIVED.unpack(self.sock.getsockopt(IPPROTO_TCP, TCP_INFO, _BYTES_RECEIVED.size))[0])

    def close(self) -> None:
        if self in self.open_connections:
            self.open_connections.discard(self)
            _Connection.closed_bytes += self.count_received_bytes()
        super().close()


class _Pool(HTTPSConnectionPool):
    ConnectionCls = _Connection
    requests: ClassVar[int] = 0

    def urlopen(self, *args: Any, **options: Any) -> BaseHTTPResponse:
        _Pool.requests += 1
        return super().urlopen(*args, **options)


class MeteredClient(KubeClient):
    """The product's client, over sockets that count."""

    def _build_api_client(self) -> RawApiClient:
        api = super()._build_api_client()
        api.pool_manager.pool_classes_by_scheme = {"https": _Pool}
        return api


class Meter:
    """Reads all counters before and after a snapshot."""

    def __init__(self, servers: tuple[int, ...]) -> None:
        """Count the processes *servers* as those of the API server."""
        self._servers = servers
        self._before = self._read_counters()

    def begin(self) -> None:
        self._before = self._read_counters()

    def measure_since_begin(self, look: str) -> Cost:
        """Return what was used since `begin`."""
        requests, received, wall, own_seconds, server = (
            after - before for before, after in zip(self._before, self._read_counters(), strict=True)
        )
        return Cost(
            look=look,
            requests=int(requests),
            bytes_received=int(received),
            wall_ms=round(wall * 1e3, 1),
            own_cpu_ms=round(own_seconds * 1e3, 1),
            server_cpu_ms=round(server * 1e3, 1),
            peak_mib=round(_read_peak_kib() / 1024, 1),
        )

    def _read_counters(self) -> tuple[float, ...]:
        received = _Connection.closed_bytes + sum(
            connection.count_received_bytes() for connection in tuple(_Connection.open_connections)
        )
        return _Pool.requests, received, perf_counter(), process_time(), sum(map(_read_cpu_seconds, self._servers))


def read_flows(endpoint: str, authority: str, token: str) -> dict[str, Flow]:
    """Return the totals of the API server at *endpoint* by flow schema."""
    request = Request(f"{endpoint}/metrics", headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our own
    context = ssl.create_default_context(cadata=b64decode(authority).decode())
    with urlopen(request, context=context) as response:  # noqa: S310 - our own endpoint
        samples = list(_parse_samples(response.read().decode()))
    levels = {(labels["flow_schema"], labels["priority_level"]) for name, labels, _ in samples if name == _DISPATCHED}

    def sum_samples(name: str, schema: str) -> float:
        return sum(
            value
            for sample_name, labels, value in samples
            if sample_name == name and labels.get("flow_schema") == schema
        )

    return {
        schema: Flow(
            flow_schema=schema,
            priority_level=level,
            dispatched=int(sum_samples(_DISPATCHED, schema)),
            rejected=int(sum_samples(_REJECTED, schema)),
            waited_ms=sum_samples(_WAITED, schema) * 1e3,
            seats=sum_samples(_SEATS, schema),
        )
        for schema, level in sorted(levels)
    }


def subtract_flow(before: Flow | None, after: Flow) -> Flow:
    """Return the difference between *after* and *before*."""
    if before is None:
        before = Flow(flow_schema="", priority_level="", dispatched=0, rejected=0, waited_ms=0.0, seats=0.0)
    dispatched = after.dispatched - before.dispatched
    return Flow(
        flow_schema=after.flow_schema,
        priority_level=after.priority_level,
        dispatched=dispatched,
        rejected=after.rejected - before.rejected,
        waited_ms=round(after.waited_ms - before.waited_ms, 2),
        seats=round((after.seats - before.seats) / max(dispatched, 1), 2),
    )


def _parse_samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for name, labels, value in _SAMPLE.findall(text):
        if name.startswith("apiserver_flowcontrol_"):
            yield name, dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)


def _read_peak_kib() -> int:
    """Return the peak memory of this process; getrusage would include what its parent had when it was started."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def _read_cpu_seconds(pid: int) -> float:
    """Return the processor seconds of process *pid*, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
