"""Parse the user data of an instance: the labels, taints and limits that its kubelet starts with.

An EKS node joins its cluster with one of three formats (dialects): nodeadm's NodeConfig (AL2023; alone or as parts of a
MIME archive), the arguments of bootstrap.sh (AL2) and Bottlerocket's settings. User data that cannot be parsed, or with
which the kubelet would refuse to start, is a ValueError that names the part: such an instance never registers.
"""

import tomllib
from collections.abc import Mapping
from email import message_from_bytes
from typing import Any, Final, Literal

import msgspec
import yaml

from sim.cluster.kubelet.user_data_flags import parse_bootstrap_arguments, parse_kubelet_flags, parse_pairs, parse_taint

Dialect = Literal["nodeadm", "bootstrap", "bottlerocket"]

_NODE_CONFIG_CONTENT_TYPE: Final = "application/node.eks.aws"
_REQUIRED_CLUSTER_FIELDS: Final = ("name", "apiServerEndpoint", "certificateAuthority", "cidr")
_REQUIRED_BOTTLEROCKET_FIELDS: Final = ("cluster-name", "api-server", "cluster-certificate")
_TAINT_EFFECTS: Final = {"NoSchedule", "PreferNoSchedule", "NoExecute"}
_ALLOWED_KUBELET_LABELS: Final = {
    *("beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os"),
    *("failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone"),
    *("kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os", "node.kubernetes.io/instance-type"),
    *("topology.kubernetes.io/region", "topology.kubernetes.io/zone"),
}
_ALLOWED_KUBELET_LABEL_DOMAINS: Final = (".kubelet.kubernetes.io", ".node.kubernetes.io")


class UserDataSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The kubelet settings of the user data; settings that are absent there are empty."""

    dialect: Dialect
    cluster_name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Mapping[str, str], ...] = ()
    max_pods: int | None = None
    cluster_dns: tuple[str, ...] = ()
    kube_reserved: Mapping[str, str] = {}
    system_reserved: Mapping[str, str] = {}
    eviction_hard: Mapping[str, str] = {}


def parse_user_data(user_data: bytes) -> UserDataSettings:
    """Parse *user_data* as the instance would.

    Raises:
        ValueError: a part is malformed, the kubelet would not start with it, or no part joins a cluster.
    """
    try:
        text = user_data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"user data: not UTF-8: {error}") from error
    start = text.lstrip()
    if start.startswith(("MIME-Version:", "Content-Type:")):
        return _parse_archive(start.encode())
    if start.startswith("#!"):
        return _parse_parts([("user data", "text/x-shellscript", text)])
    if any(line.lstrip().startswith(("[settings", "settings.")) for line in text.splitlines()):
        return _parse_bottlerocket(text)
    return _parse_parts([("user data", _NODE_CONFIG_CONTENT_TYPE, text)])


def _parse_archive(archive: bytes) -> UserDataSettings:
    message = message_from_bytes(archive)
    if not message.is_multipart():
        raise ValueError(f"user data: {message.get_content_type()} is not a multipart archive")
    parts = []
    for number, part in enumerate(message.walk()):
        if not part.is_multipart():
            content_type = part.get_content_type()
            content = part.get_payload(decode=True)
            text = content.decode(errors="replace") if isinstance(content, bytes) else ""
            parts.append((f"part {number} ({content_type})", content_type, text))
    return _parse_parts(parts)


def _parse_parts(parts: list[tuple[str, str, str]]) -> UserDataSettings:
    """Parse *parts* (name, content type, text); NodeConfigs are merged, and the last one takes precedence."""
    config: dict[str, Any] = {}
    script_settings: UserDataSettings | None = None
    last_config_name = ""
    for name, content_type, text in parts:
        if content_type == _NODE_CONFIG_CONTENT_TYPE:
            config, last_config_name = _merge_configs(config, _load_node_config(name, text)), name
        elif content_type.startswith("text/x-shellscript"):
            script_settings = _parse_script(name, text) or script_settings
    if config:
        return _parse_node_config(last_config_name, config)
    if script_settings is None:
        raise ValueError("user data: no part of it joins a cluster")
    return script_settings


def _load_node_config(name: str, text: str) -> dict[str, Any]:
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


def _merge_configs(base: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    """Merge *override* into *base*; kubelet flags are appended, other lists are replaced."""
    result = dict(base)
    for key, value in override.items():
        base_value = result.get(key)
        if isinstance(base_value, dict) and isinstance(value, dict):
            result[key] = _merge_configs(base_value, value)
        elif key == "flags" and isinstance(base_value, list) and isinstance(value, list):
            result[key] = base_value + value
        else:
            result[key] = value
    return result


def _parse_node_config(name: str, document: dict[str, Any]) -> UserDataSettings:
    spec = _get_table(name, document, "spec")
    cluster = _get_table(name, spec, "cluster")
    for field in _REQUIRED_CLUSTER_FIELDS:
        if not cluster.get(field):
            raise ValueError(f"{name}: spec.cluster.{field} is missing")
    kubelet = _get_table(name, spec, "kubelet")
    config = _get_table(name, kubelet, "config")
    flags = parse_kubelet_flags(name, kubelet.get("flags") or [])
    registered_taints = list(config.get("registerWithTaints") or [])
    taints = [_get_table(name, {"registerWithTaints": taint}, "registerWithTaints") for taint in registered_taints]
    return UserDataSettings(
        dialect="nodeadm",
        cluster_name=str(cluster["name"]),
        labels=_check_labels(name, parse_pairs(name, flags.get("node-labels", ""))),
        taints=_check_taints(name, taints or _parse_flag_taints(name, flags)),
        max_pods=_parse_integer(name, "maxPods", config.get("maxPods", flags.get("max-pods"))),
        cluster_dns=tuple(config.get("clusterDNS") or ()),
        kube_reserved=_convert_to_strings(_get_table(name, config, "kubeReserved")),
        system_reserved=_convert_to_strings(_get_table(name, config, "systemReserved")),
        eviction_hard=_convert_to_strings(_get_table(name, config, "evictionHard")),
    )


def _parse_script(name: str, text: str) -> UserDataSettings | None:
    """Parse the call of bootstrap.sh in *text*; None if there is no call."""
    arguments = parse_bootstrap_arguments(name, text)
    if arguments is None:
        return None
    flags = parse_kubelet_flags(name, [arguments.get("kubelet-extra-args", "")])
    dns = arguments.get("dns-cluster-ip", "")
    return UserDataSettings(
        dialect="bootstrap",
        cluster_name=arguments["cluster"],
        labels=_check_labels(name, parse_pairs(name, flags.get("node-labels", ""))),
        taints=_check_taints(name, _parse_flag_taints(name, flags)),
        max_pods=_parse_integer(name, "--max-pods", flags.get("max-pods")),
        cluster_dns=tuple(filter(None, dns.split(","))),
        kube_reserved=parse_pairs(name, flags.get("kube-reserved", "")),
        system_reserved=parse_pairs(name, flags.get("system-reserved", "")),
        eviction_hard=parse_pairs(name, flags.get("eviction-hard", ""), separator="<"),
    )


def _parse_bottlerocket(text: str) -> UserDataSettings:
    name = "settings.kubernetes"
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"user data: not TOML: {error}") from error
    kubernetes = _get_table(name, _get_table("user data", document, "settings"), "kubernetes")
    for field in _REQUIRED_BOTTLEROCKET_FIELDS:
        if not kubernetes.get(field):
            raise ValueError(f"{name}: {field} is missing")
    taints = []
    for key, values in sorted(_get_table(name, kubernetes, "node-taints").items()):
        taints += [parse_taint(name, f"{key}={value}") for value in ([values] if isinstance(values, str) else values)]
    dns = kubernetes.get("cluster-dns-ip") or []
    return UserDataSettings(
        dialect="bottlerocket",
        cluster_name=str(kubernetes["cluster-name"]),
        labels=_check_labels(name, _convert_to_strings(_get_table(name, kubernetes, "node-labels"))),
        taints=_check_taints(name, taints),
        max_pods=_parse_integer(name, "max-pods", kubernetes.get("max-pods")),
        cluster_dns=(dns,) if isinstance(dns, str) else tuple(dns),
        kube_reserved=_convert_to_strings(_get_table(name, kubernetes, "kube-reserved")),
        system_reserved=_convert_to_strings(_get_table(name, kubernetes, "system-reserved")),
        eviction_hard=_convert_to_strings(_get_table(name, kubernetes, "eviction-hard")),
    )


def _get_table(name: str, parent: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = parent.get(key)
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise ValueError(f"{name}: {key} is not a mapping")  # noqa: TRY004 - bad data, not a bad call
    return table


def _convert_to_strings(table: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in sorted(table.items())}


def _parse_integer(name: str, field: str, value: object) -> int | None:
    if value is None:
        return None
    try:
        return int(str(value))
    except ValueError as error:
        raise ValueError(f"{name}: {field} {value!r} is not a number") from error


def _parse_flag_taints(name: str, flags: Mapping[str, str]) -> list[dict[str, str]]:
    return [parse_taint(name, text) for text in flags.get("register-with-taints", "").split(",") if text]


def _check_taints(name: str, taints: list[dict[str, str]]) -> tuple[dict[str, str], ...]:
    for taint in taints:
        if not taint.get("key") or taint.get("effect") not in _TAINT_EFFECTS:
            raise ValueError(f"{name}: {taint} is not a taint")
    return tuple(taints)


def _check_labels(name: str, labels: dict[str, str]) -> dict[str, str]:
    """Reject labels that a kubelet must not set on its own node; return the *labels*."""
    for key in labels:
        domain = key.rpartition("/")[0]
        is_reserved = f".{domain}".endswith((".kubernetes.io", ".k8s.io"))
        is_allowed = f".{domain}".endswith(_ALLOWED_KUBELET_LABEL_DOMAINS)
        if is_reserved and not is_allowed and key not in _ALLOWED_KUBELET_LABELS:
            raise ValueError(f"{name}: unknown 'kubernetes.io' or 'k8s.io' label specified with --node-labels: {key}")
    return labels
