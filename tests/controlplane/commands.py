"""The command lines of a control plane: flags that make it as strict as a real one, and nothing else.

etcd serves a unix socket in the control plane's own folder, which other users cannot enter (its mandatory peer port
requires a client certificate, and none is issued), and the API server one TLS port. Scheduler and controllers have no
port and are the users of a real cluster, with the roles that Kubernetes gives them.
"""

import json
from pathlib import Path
from typing import Final

import msgspec

from sim.playground.nodes import KWOK_LABEL
from tests.controlplane.binaries import API_SERVER, CONTROLLERS, ETCD, KWOK, SCHEDULER

POD_RANGE: Final = "10.128.0.0/9"
SERVICE_RANGE: Final = "10.0.0.0/16"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """The user of a bearer token."""

    name: str
    groups: tuple[str, ...] = ()


def build_token_file(tokens: dict[str, User]) -> str:
    """Return kube-apiserver's CSV: token, user, uid, groups."""
    return "".join(f'{token},{user.name},{user.name},"{",".join(user.groups)}"\n' for token, user in tokens.items())


def build_kubeconfig(endpoint: str, authority: str, token: str) -> str:
    """Return a kubeconfig in JSON, which is YAML; *authority* is PEM in base64."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "joiner", "cluster": {"server": endpoint, "certificate-authority-data": authority}}],
            "users": [{"name": "joiner", "user": {"token": token}}],
            "contexts": [{"name": "joiner", "context": {"cluster": "joiner", "user": "joiner"}}],
            "current-context": "joiner",
        },
        indent=2,
    )


def build_etcd_command(programs: Path, folder: Path) -> list[str]:
    """Return the command that starts etcd in *folder*; its data need not survive a power failure."""
    return [
        str(programs / ETCD),
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls=unix://{folder}/etcd.sock",
        "--advertise-client-urls=https://127.0.0.1:0",
        "--listen-peer-urls=https://127.0.0.1:0",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={folder}/ca.crt",
        f"--peer-cert-file={folder}/server.crt",
        f"--peer-key-file={folder}/server.key",
        "--initial-advertise-peer-urls=https://127.0.0.1:0",
        "--initial-cluster=default=https://127.0.0.1:0",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def build_api_server_command(programs: Path, folder: Path, port: int, *arguments: str) -> list[str]:
    """Return the command that starts kube-apiserver on loopback *port*, which may be reserved with SO_REUSEPORT."""
    return [
        str(programs / API_SERVER),
        f"--etcd-servers=unix://{folder}/etcd.sock",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing",
        f"--tls-cert-file={folder}/server.crt",
        f"--tls-private-key-file={folder}/server.key",
        f"--token-auth-file={folder}/tokens.csv",
        "--authorization-mode=Node,RBAC",
        f"--service-account-issuer=https://127.0.0.1:{port}",
        f"--service-account-key-file={folder}/accounts.pub",
        f"--service-account-signing-key-file={folder}/accounts.key",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--allow-privileged",
        "--endpoint-reconciler-type=none",
        "--event-ttl=15m",
        *arguments,
    ]


def configure_authenticator(folder: Path, url: str) -> tuple[str, ...]:
    """Write the configuration that sends TokenReviews to *url*, cached for a second; return the API server's flags."""
    file = folder / "authenticator.kubeconfig"
    clusters_and_users = {
        "clusters": [{"name": "reviews", "cluster": {"server": url}}],
        "users": [{"name": "api", "user": {}}],
    }
    contexts = [{"name": "reviews", "context": {"cluster": "reviews", "user": "api"}}]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        **clusters_and_users,
        "contexts": contexts,
        "current-context": "reviews",
    }
    file.write_text(json.dumps(config))
    return (
        f"--authentication-token-webhook-config-file={file}",
        "--authentication-token-webhook-version=v1",
        "--authentication-token-webhook-cache-ttl=1s",
    )


def build_controllers_command(programs: Path, folder: Path, node_grace_seconds: int) -> list[str]:
    """Return the command of kube-controller-manager; a node is lost after *node_grace_seconds* without a heartbeat."""
    return [
        str(programs / CONTROLLERS),
        f"--kubeconfig={folder}/{CONTROLLERS}.kubeconfig",
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={folder}/accounts.key",
        f"--root-ca-file={folder}/ca.crt",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        f"--node-monitor-grace-period={node_grace_seconds}s",
    ]


def build_scheduler_config(folder: Path) -> str:
    """Return the scheduler's configuration: its client limits must not slow down a burst of a thousand pods."""
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": f"{folder}/{SCHEDULER}.kubeconfig", "qps": 500, "burst": 1000},
        }
    )


def build_scheduler_command(programs: Path, folder: Path) -> list[str]:
    """Return the command that starts kube-scheduler."""
    return [str(programs / SCHEDULER), f"--config={folder}/scheduler.yaml", "--secure-port=0"]


def build_kwok_command(programs: Path, folder: Path, node_grace_seconds: int) -> list[str]:
    """Return the command of kwok for nodes with its label; it renews leases four times per *node_grace_seconds*."""
    return [
        str(programs / KWOK),
        f"--kubeconfig={folder}/{KWOK}.kubeconfig",
        f"--config={folder}/stages.yaml",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-label-selector={KWOK_LABEL}=fake",
        f"--cidr={POD_RANGE}",
        "--node-ip=10.1.0.1",
        f"--node-lease-duration-seconds={node_grace_seconds}",
        "--v=WARN",
    ]
