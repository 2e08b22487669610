"""Host ports of pods, and their conflicts on a node."""

from collections.abc import Iterable

import msgspec


class HostPort(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A host port of a pod."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104 - Kubernetes' word for every address

    def has_conflict(self, host_port: "HostPort") -> bool:
        """Return whether both ports cannot be used on one node."""
        wildcard_ips = ("0.0.0.0", "::")  # noqa: S104
        is_same_port = self.port == host_port.port and self.protocol == host_port.protocol
        return is_same_port and (self.ip == host_port.ip or self.ip in wildcard_ips or host_port.ip in wildcard_ips)


def has_port_conflict(used_ports: Iterable[HostPort], requested_ports: tuple[HostPort, ...]) -> bool:
    """Return whether any of *requested_ports* conflicts with *used_ports*."""
    return bool(requested_ports) and any(
        used_port.has_conflict(requested_port) for used_port in used_ports for requested_port in requested_ports
    )
