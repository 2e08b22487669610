"""The command lines of a control plane: what makes it as strict as a real one, and nothing else.

etcd serves a unix socket in the plane's own folder, which nobody else may enter (its port for peers, which it insists
on, asks for a certificate that nobody has), and the API server one TLS port. Scheduler and controllers listen nowhere
and are the users of a real cluster, with the roles that Kubernetes gives them.
"""

import json
from pathlib import Path
from typing import Final

import msgspec

from sim.playground_nodes import KWOK as KWOK_LABEL
from tests.controlplane.binaries import API_SERVER, CONTROLLERS, ETCD, KWOK, SCHEDULER

POD_RANGE: Final = "10.128.0.0/9"
SERVICE_RANGE: Final = "10.0.0.0/16"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Who a bearer token stands for."""

    name: str
    groups: tuple[str, ...] = ()


def token_file(tokens: dict[str, User]) -> str:
    """Answer kube-apiserver's CSV: token, user, uid, groups."""
    return "".join(f'{token},{user.name},{user.name},"{",".join(user.groups)}"\n' for token, user in tokens.items())


def kubeconfig(endpoint: str, authority: str, token: str) -> str:
    """Answer a kubeconfig, in JSON, which is YAML; *authority* is PEM in base64."""
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


def etcd(programs: Path, folder: Path) -> list[str]:
    """Answer how to start etcd in *folder*; it need not survive a crash of the machine."""
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


def api_server(programs: Path, folder: Path, port: int, *more: str) -> list[str]:
    """Answer how to start kube-apiserver on loopback *port*, which somebody may hold with SO_REUSEPORT."""
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
        *more,
    ]


def authenticator(folder: Path, url: str) -> tuple[str, ...]:
    """Have TokenReviews sent to *url*, and answers forgotten after a second; answer the API server's flags."""
    file = folder / "authenticator.kubeconfig"
    named = {"clusters": [{"name": "reviews", "cluster": {"server": url}}], "users": [{"name": "api", "user": {}}]}
    contexts = [{"name": "reviews", "context": {"cluster": "reviews", "user": "api"}}]
    whole = {"apiVersion": "v1", "kind": "Config", **named, "contexts": contexts, "current-context": "reviews"}
    file.write_text(json.dumps(whole))
    return (
        f"--authentication-token-webhook-config-file={file}",
        "--authentication-token-webhook-version=v1",
        "--authentication-token-webhook-cache-ttl=1s",
    )


def controllers(programs: Path, folder: Path, node_grace_seconds: int) -> list[str]:
    """Answer how to start kube-controller-manager; a node is lost after *node_grace_seconds* without a heartbeat."""
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


def scheduler_settings(folder: Path) -> str:
    """Answer the scheduler's configuration: a burst of a thousand pods is not to wait for its client."""
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": f"{folder}/{SCHEDULER}.kubeconfig", "qps": 500, "burst": 1000},
        }
    )


def scheduler(programs: Path, folder: Path) -> list[str]:
    """Answer how to start kube-scheduler."""
    return [str(programs / SCHEDULER), f"--config={folder}/scheduler.yaml", "--secure-port=0"]


def kwok(programs: Path, folder: Path, node_grace_seconds: int) -> list[str]:
    """Answer how to start kwok for nodes while they have its label; it renews a lease four times in that grace."""
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
