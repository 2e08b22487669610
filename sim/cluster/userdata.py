"""What a new machine reads of its user data: the labels, taints and limits that its kubelet starts with.

Three dialects join an EKS cluster: nodeadm's NodeConfig (AL2023; alone or as parts of a MIME archive), the arguments
of bootstrap.sh (AL2) and Bottlerocket's settings. Whatever cannot be read, or would make the kubelet refuse to start,
is a ValueError that names the part: such a machine never registers.
"""

import tomllib
from collections.abc import Mapping
from email import message_from_bytes
from typing import Any, Final, Literal

import msgspec
import yaml

from sim.cluster.userdata_flags import bootstrap_arguments, kubelet_flags, pairs, taint_from_text

Dialect = Literal["nodeadm", "bootstrap", "bottlerocket"]

_NODE_CONFIG: Final = "application/node.eks.aws"
_CLUSTER_FIELDS: Final = ("name", "apiServerEndpoint", "certificateAuthority", "cidr")
_BOTTLEROCKET_FIELDS: Final = ("cluster-name", "api-server", "cluster-certificate")
_EFFECTS: Final = {"NoSchedule", "PreferNoSchedule", "NoExecute"}
_LABELS_OF_KUBELETS: Final = {
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
}
_DOMAINS_OF_KUBELETS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


class UserDataSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The kubelet's settings; what the user data does not say is empty."""

    dialect: Dialect
    cluster_name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Mapping[str, str], ...] = ()
    max_pods: int | None = None
    cluster_dns: tuple[str, ...] = ()
    kube_reserved: Mapping[str, str] = {}
    system_reserved: Mapping[str, str] = {}
    eviction_hard: Mapping[str, str] = {}


def boot_settings_from_user_data(user_data: bytes) -> UserDataSettings:
    """Read *user_data* as the machine would.

    Raises:
        ValueError: a part cannot be read or the kubelet would not start with it, or nothing joins a cluster.
    """
    try:
        text = user_data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"user data: not UTF-8: {error}") from error
    start = text.lstrip()
    if start.startswith(("MIME-Version:", "Content-Type:")):
        return _from_archive(start.encode())
    if start.startswith("#!"):
        return _from_parts([("user data", "text/x-shellscript", text)])
    if any(line.lstrip().startswith(("[settings", "settings.")) for line in text.splitlines()):
        return _from_bottlerocket(text)
    return _from_parts([("user data", _NODE_CONFIG, text)])


def _from_archive(archive: bytes) -> UserDataSettings:
    message = message_from_bytes(archive)
    if not message.is_multipart():
        raise ValueError(f"user data: {message.get_content_type()} is not a multipart archive")
    parts = []
    for number, part in enumerate(message.walk()):
        if not part.is_multipart():
            kind = part.get_content_type()
            content = part.get_payload(decode=True)
            text = content.decode(errors="replace") if isinstance(content, bytes) else ""
            parts.append((f"part {number} ({kind})", kind, text))
    return _from_parts(parts)


def _from_parts(parts: list[tuple[str, str, str]]) -> UserDataSettings:
    """Let each of *parts* (name, content type, text) have its say; NodeConfigs are merged, the last wins."""
    config: dict[str, Any] = {}
    script: UserDataSettings | None = None
    last = ""
    for name, kind, text in parts:
        if kind == _NODE_CONFIG:
            config, last = _merged(config, _node_config(name, text)), name
        elif kind.startswith("text/x-shellscript"):
            script = _from_script(name, text) or script
    if config:
        return _from_node_config(last, config)
    if script is None:
        raise ValueError("user data: no part of it joins a cluster")
    return script


def _node_config(name: str, text: str) -> dict[str, Any]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{name}: not YAML: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict) or document.get("kind") != "NodeConfig":
        raise ValueError(f"{name}: not a NodeConfig")
    if document.get("apiVersion") != "node.eks.aws/v1alpha1":
        raise ValueError(f"{name}: apiVersion {document.get('apiVersion')!r} is not node.eks.aws/v1alpha1")
    return document


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Lay *above* over *below*; kubelet flags are added, other lists replaced."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = _merged(old, value)
        elif key == "flags" and isinstance(old, list) and isinstance(value, list):
            result[key] = old + value
        else:
            result[key] = value
    return result


def _from_node_config(name: str, document: dict[str, Any]) -> UserDataSettings:
    spec = _table(name, document, "spec")
    cluster = _table(name, spec, "cluster")
    for field in _CLUSTER_FIELDS:
        if not cluster.get(field):
            raise ValueError(f"{name}: spec.cluster.{field} is missing")
    kubelet = _table(name, spec, "kubelet")
    config = _table(name, kubelet, "config")
    flags = kubelet_flags(name, kubelet.get("flags") or [])
    taints = [_table(name, {"registerWithTaints": taint}, "registerWithTaints") for taint in _registered(config)]
    return UserDataSettings(
        dialect="nodeadm",
        cluster_name=str(cluster["name"]),
        labels=_checked_labels(name, pairs(name, flags.get("node-labels", ""))),
        taints=_checked_taints(name, taints or _flag_taints(name, flags)),
        max_pods=_integer(name, "maxPods", config.get("maxPods", flags.get("max-pods"))),
        cluster_dns=tuple(config.get("clusterDNS") or ()),
        kube_reserved=_texts(_table(name, config, "kubeReserved")),
        system_reserved=_texts(_table(name, config, "systemReserved")),
        eviction_hard=_texts(_table(name, config, "evictionHard")),
    )


def _registered(config: dict[str, Any]) -> list[Any]:
    return list(config.get("registerWithTaints") or [])


def _from_script(name: str, text: str) -> UserDataSettings | None:
    """Read the call of bootstrap.sh in *text*; None if there is none."""
    arguments = bootstrap_arguments(name, text)
    if arguments is None:
        return None
    flags = kubelet_flags(name, [arguments.get("kubelet-extra-args", "")])
    dns = arguments.get("dns-cluster-ip", "")
    return UserDataSettings(
        dialect="bootstrap",
        cluster_name=arguments["cluster"],
        labels=_checked_labels(name, pairs(name, flags.get("node-labels", ""))),
        taints=_checked_taints(name, _flag_taints(name, flags)),
        max_pods=_integer(name, "--max-pods", flags.get("max-pods")),
        cluster_dns=tuple(filter(None, dns.split(","))),
        kube_reserved=pairs(name, flags.get("kube-reserved", "")),
        system_reserved=pairs(name, flags.get("system-reserved", "")),
        eviction_hard=pairs(name, flags.get("eviction-hard", ""), separator="<"),
    )


def _from_bottlerocket(text: str) -> UserDataSettings:
    name = "settings.kubernetes"
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"user data: not TOML: {error}") from error
    kubernetes = _table(name, _table("user data", document, "settings"), "kubernetes")
    for field in _BOTTLEROCKET_FIELDS:
        if not kubernetes.get(field):
            raise ValueError(f"{name}: {field} is missing")
    taints = []
    for key, values in sorted(_table(name, kubernetes, "node-taints").items()):
        taints += [taint_from_text(name, f"{key}={v}") for v in ([values] if isinstance(values, str) else values)]
    dns = kubernetes.get("cluster-dns-ip") or []
    return UserDataSettings(
        dialect="bottlerocket",
        cluster_name=str(kubernetes["cluster-name"]),
        labels=_checked_labels(name, _texts(_table(name, kubernetes, "node-labels"))),
        taints=_checked_taints(name, taints),
        max_pods=_integer(name, "max-pods", kubernetes.get("max-pods")),
        cluster_dns=(dns,) if isinstance(dns, str) else tuple(dns),
        kube_reserved=_texts(_table(name, kubernetes, "kube-reserved")),
        system_reserved=_texts(_table(name, kubernetes, "system-reserved")),
        eviction_hard=_texts(_table(name, kubernetes, "eviction-hard")),
    )


def _table(name: str, above: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = above.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"{name}: {key} is not a mapping")  # noqa: TRY004 - bad data, not a bad call
    return found


def _texts(table: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in sorted(table.items())}


def _integer(name: str, field: str, value: object) -> int | None:
    if value is None:
        return None
    try:
        return int(str(value))
    except ValueError as error:
        raise ValueError(f"{name}: {field} {value!r} is not a number") from error


def _flag_taints(name: str, flags: Mapping[str, str]) -> list[dict[str, str]]:
    return [taint_from_text(name, text) for text in flags.get("register-with-taints", "").split(",") if text]


def _checked_taints(name: str, taints: list[dict[str, str]]) -> tuple[dict[str, str], ...]:
    for taint in taints:
        if not taint.get("key") or taint.get("effect") not in _EFFECTS:
            raise ValueError(f"{name}: {taint} is not a taint")
    return tuple(taints)


def _checked_labels(name: str, labels: dict[str, str]) -> dict[str, str]:
    """Refuse labels that a kubelet may not give itself, as it does."""
    for key in labels:
        domain = key.rpartition("/")[0]
        reserved = any(domain == each or domain.endswith(f".{each}") for each in ("kubernetes.io", "k8s.io"))
        allowed = any(domain == each or domain.endswith(f".{each}") for each in _DOMAINS_OF_KUBELETS)
        if reserved and not allowed and key not in _LABELS_OF_KUBELETS:
            raise ValueError(f"{name}: unknown 'kubernetes.io' or 'k8s.io' label specified with --node-labels: {key}")
    return labels
