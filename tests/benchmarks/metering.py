"""What a look costs: requests and bytes at our sockets, seconds on processors, memory, and the server's own account."""

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
from urllib3 import BaseHTTPResponse, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPSConnection

from shared.kube.client import KubeClient

_RECEIVED: Final = struct.Struct("=128xQ")
"""tcpi_bytes_received of Linux' struct tcp_info."""
_TICKS: Final = sysconf("SC_CLK_TCK")
_SAMPLE: Final = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_DISPATCHED: Final = "apiserver_flowcontrol_dispatched_requests_total"
_REJECTED: Final = "apiserver_flowcontrol_rejected_requests_total"
_WAITED: Final = "apiserver_flowcontrol_request_wait_duration_seconds_sum"
_SEATS: Final = "apiserver_flowcontrol_work_estimated_seats_sum"


class Cost(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Of one look; bytes as they came over the wire, with TLS; *peak_mib* is this process' so far."""

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
    """Taken at once by one request, on average."""


class _Connection(HTTPSConnection):
    """One that says what came over it, before its end too."""

    closed_bytes: ClassVar[int] = 0
    open_ones: ClassVar[set["_Connection"]] = set()

    def connect(self) -> None:
        super().connect()
        self.open_ones.add(self)

    def received(self) -> int:
        if self.sock is None:
            return 0
        return int(_RECEIVED.unpack(self.sock.getsockopt(IPPROTO_TCP, TCP_INFO, _RECEIVED.size))[0])

    def close(self) -> None:
        if self in self.open_ones:
            self.open_ones.discard(self)
            _Connection.closed_bytes += self.received()
        super().close()


class _Pool(HTTPSConnectionPool):
    ConnectionCls = _Connection
    requests: ClassVar[int] = 0

    def urlopen(self, *args: Any, **options: Any) -> BaseHTTPResponse:
        _Pool.requests += 1
        return super().urlopen(*args, **options)


class MeteredClient(KubeClient):
    """The product's client, over sockets that count."""

    def _connections(self) -> PoolManager:
        pool = super()._connections()
        pool.pool_classes_by_scheme = {"https": _Pool}
        return pool


class Meter:
    """Reads all dials before and after a look."""

    def __init__(self, servers: tuple[int, ...]) -> None:
        """Count the processes *servers* as the API server's."""
        self._servers = servers
        self._before = self._dials()

    def begin(self) -> None:
        self._before = self._dials()

    def cost(self, look: str) -> Cost:
        """Answer what was used since `begin`."""
        requests, received, wall, own, server = (
            after - before for before, after in zip(self._before, self._dials(), strict=True)
        )
        return Cost(
            look=look,
            requests=int(requests),
            bytes_received=int(received),
            wall_ms=round(wall * 1e3, 1),
            own_cpu_ms=round(own * 1e3, 1),
            server_cpu_ms=round(server * 1e3, 1),
            peak_mib=round(_peak_kib() / 1024, 1),
        )

    def _dials(self) -> tuple[float, ...]:
        received = _Connection.closed_bytes + sum(one.received() for one in tuple(_Connection.open_ones))
        return _Pool.requests, received, perf_counter(), process_time(), sum(map(_cpu_seconds, self._servers))


def flows(endpoint: str, authority: str, token: str) -> dict[str, Flow]:
    """Answer what the API server at *endpoint* counted so far, by flow schema."""
    request = Request(f"{endpoint}/metrics", headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our own
    context = ssl.create_default_context(cadata=b64decode(authority).decode())
    with urlopen(request, context=context) as answer:  # noqa: S310 - our own endpoint
        samples = list(_samples(answer.read().decode()))
    levels = {(labels["flow_schema"], labels["priority_level"]) for name, labels, _ in samples if name == _DISPATCHED}

    def counted(name: str, schema: str) -> float:
        return sum(value for one, labels, value in samples if one == name and labels.get("flow_schema") == schema)

    return {
        schema: Flow(
            flow_schema=schema,
            priority_level=level,
            dispatched=int(counted(_DISPATCHED, schema)),
            rejected=int(counted(_REJECTED, schema)),
            waited_ms=counted(_WAITED, schema) * 1e3,
            seats=counted(_SEATS, schema),
        )
        for schema, level in sorted(levels)
    }


def spent(before: Flow | None, after: Flow) -> Flow:
    """Answer what came to *before*."""
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


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for name, labels, value in _SAMPLE.findall(text):
        if name.startswith("apiserver_flowcontrol_"):
            yield name, dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)


def _peak_kib() -> int:
    """Answer the most that this process ever had; getrusage counts what its parent had when it began, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def _cpu_seconds(pid: int) -> float:
    """Answer what the process *pid* had of the processors, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
