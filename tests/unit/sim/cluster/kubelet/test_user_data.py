"""Tests of user data as an instance reads it: three dialects, and errors that stop a kubelet."""

from textwrap import dedent

import pytest

from sim.cluster.kubelet.user_data import UserDataSettings, parse_user_data

CLUSTER = "{name: prod, apiServerEndpoint: https://x, certificateAuthority: Y2E=, cidr: 10.100.0.0/16}"


def make_node_config(kubelet: str = "{}") -> str:
    spec = f"{{cluster: {CLUSTER}, kubelet: {kubelet}}}"
    return f"# generated\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {spec}\n"


def make_mime_archive(*parts: tuple[str, str]) -> bytes:
    text = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n'
    for kind, content in parts:
        text += f"--//\nContent-Type: {kind}\n\n{content}\n"
    return f"{text}--//--".encode()


NODEADM = make_mime_archive(
    ("text/x-shellscript; charset=us-ascii", "#!/bin/bash\necho hello"),
    ("application/node.eks.aws", make_node_config('{config: {maxPods: 5, clusterDNS: [1.1.1.1]}, flags: ["--v=2"]}')),
    (
        "application/node.eks.aws",
        make_node_config(
            "{config: {maxPods: 58, clusterDNS: [10.100.0.10], kubeReserved: {cpu: 80m}, systemReserved: {memory: 1Gi},"
            " evictionHard: {memory.available: 5%},"
            " registerWithTaints: [{key: karpenter.sh/unregistered, effect: NoExecute}]},"
            ' flags: ["--node-labels=\\"karpenter.sh/nodepool=default,team=x\\""]}'
        ),
    ),
)

BOOTSTRAP = make_mime_archive(
    ("text/x-shellscript", "#!/bin/bash\n# /etc/eks/bootstrap.sh 'other'"),
    (
        'text/x-shellscript; charset="us-ascii"',
        dedent(
            """\
            #!/bin/bash -xe
            exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
            /etc/eks/bootstrap.sh 'prod' --apiserver-endpoint 'https://x' --b64-cluster-ca 'Y2E=' \\
            --dns-cluster-ip '10.100.0.10' \\
            --use-max-pods false \\
            --kubelet-extra-args '--node-labels="karpenter.sh/nodepool=default,team=x" \
--register-with-taints="karpenter.sh/unregistered:NoExecute" --max-pods=58 --kube-reserved="cpu=80m" \
--system-reserved="memory=1Gi" --eviction-hard="memory.available<5%"'"""
        ),
    ),
)

BOTTLEROCKET = b"""
[settings.kubernetes]
api-server = "https://x"
cluster-certificate = "Y2E="
cluster-name = "prod"
cluster-dns-ip = "10.100.0.10"
max-pods = 58
[settings.kubernetes.node-labels]
"karpenter.sh/nodepool" = "default"
team = "x"
[settings.kubernetes.node-taints]
"karpenter.sh/unregistered" = [":NoExecute"]
[settings.kubernetes.kube-reserved]
cpu = "80m"
[settings.kubernetes.system-reserved]
memory = "1Gi"
[settings.kubernetes.eviction-hard]
"memory.available" = "5%"
"""


@pytest.mark.parametrize(
    ("dialect", "user_data"), [("nodeadm", NODEADM), ("bootstrap", BOOTSTRAP), ("bottlerocket", BOTTLEROCKET)]
)
def test_all_user_data_formats_parse_to_the_same_settings(dialect: str, user_data: bytes) -> None:
    assert parse_user_data(user_data) == UserDataSettings(
        dialect=dialect,  # type: ignore[arg-type] # one of the three, as the table says
        cluster_name="prod",
        labels={"karpenter.sh/nodepool": "default", "team": "x"},
        taints=({"key": "karpenter.sh/unregistered", "effect": "NoExecute"},),
        max_pods=58,
        cluster_dns=("10.100.0.10",),
        kube_reserved={"cpu": "80m"},
        system_reserved={"memory": "1Gi"},
        eviction_hard={"memory.available": "5%"},
    )


def test_plain_node_config_with_defaults_is_parsed() -> None:
    settings = parse_user_data(make_node_config().encode())
    assert settings == UserDataSettings(dialect="nodeadm", cluster_name="prod")


def test_node_labels_of_several_flags_are_merged() -> None:
    flags = 'flags: ["--node-labels=a=1", "--node-labels b=2", "--max-pods=7", "--register-with-taints=t=v:NoSchedule"]'
    settings = parse_user_data(make_node_config(f"{{{flags}}}").encode())
    assert (settings.labels, settings.max_pods) == ({"a": "1", "b": "2"}, 7)
    assert settings.taints == ({"key": "t", "value": "v", "effect": "NoSchedule"},)


def test_bootstrap_script_uses_the_last_call() -> None:
    script = (
        b"#!/bin/bash\n/etc/eks/bootstrap.sh one\n/etc/eks/bootstrap.sh two --kubelet-extra-args '--v=2 --max-pods 9'\n"
    )
    settings = parse_user_data(script)
    assert (settings.cluster_name, settings.max_pods) == ("two", 9)


def test_bottlerocket_taint_value_may_be_a_string() -> None:
    toml = BOTTLEROCKET.replace(b'[":NoExecute"]', b'"x:NoSchedule"').replace(b'"10.100.0.10"', b'["10.100.0.10"]')
    settings = parse_user_data(toml)
    assert settings.taints == ({"key": "karpenter.sh/unregistered", "value": "x", "effect": "NoSchedule"},)
    assert settings.cluster_dns == ("10.100.0.10",)


def test_empty_node_config_part_is_ignored() -> None:
    parts = make_mime_archive(
        ("application/node.eks.aws", "# only a comment"), ("application/node.eks.aws", make_node_config())
    )
    assert parse_user_data(parts).cluster_name == "prod"


BROKEN: list[tuple[bytes, str]] = [
    (b"", "no part of it joins a cluster"),
    (b"\xff\xfe", "user data: not UTF-8"),
    (b"#!/bin/bash\necho hello", "no part of it joins"),
    (b"hello", "user data: not a NodeConfig"),
    (b"kind: [", "user data: not YAML"),
    (b"MIME-Version: 1.0\nContent-Type: text/plain\n\nx", "text/plain is not a multipart archive"),
    (
        make_mime_archive(("application/node.eks.aws", "kind: Pod")),
        r"part 1 \(application/node.eks.aws\): not a NodeConfig",
    ),
    (make_mime_archive(("application/node.eks.aws", "kind: NodeConfig")), "apiVersion None is not"),
    (make_node_config().replace("cidr: 10.100.0.0/16", "cidr: ''").encode(), "spec.cluster.cidr is missing"),
    (make_node_config("[]").encode(), "kubelet is not a mapping"),
    (make_node_config("{config: {maxPods: many}}").encode(), "maxPods 'many' is not a number"),
    (make_node_config("{config: {registerWithTaints: [x]}}").encode(), "registerWithTaints is not a mapping"),
    (make_node_config("{config: {registerWithTaints: [{key: a, effect: Never}]}}").encode(), "is not a taint"),
    (make_node_config("{flags: [max-pods]}").encode(), "'max-pods' is not a kubelet flag"),
    (make_node_config("{flags: ['--node-labels=\"a']}").encode(), "No closing quotation"),
    (make_node_config("{flags: [--node-labels=a]}").encode(), "'a' is not key=value"),
    (make_node_config("{flags: [--register-with-taints=a]}").encode(), "taint 'a' has no effect"),
    (
        make_node_config("{flags: [--node-labels=kubernetes.io/role=x]}").encode(),
        "unknown 'kubernetes.io' or 'k8s.io' label",
    ),
    (make_node_config("{flags: [--node-labels=x.k8s.io/role=x]}").encode(), "x.k8s.io/role"),
    (b"#!/bin/sh\nbootstrap.sh", "bootstrap.sh is called without a cluster"),
    (b"[settings.kubernetes\n", "user data: not TOML"),
    (b"[settings.kubernetes]\ncluster-name='x'\n", "settings.kubernetes: api-server is missing"),
]


@pytest.mark.parametrize(("user_data", "problem"), BROKEN, ids=[problem for _, problem in BROKEN])
def test_invalid_user_data_is_rejected_with_the_reason(user_data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_user_data(user_data)


@pytest.mark.parametrize("label", ["node.kubernetes.io/role", "sub.kubelet.kubernetes.io/x", "kubernetes.io/arch"])
def test_labels_allowed_for_kubelets_are_accepted(label: str) -> None:
    settings = parse_user_data(make_node_config(f"{{flags: [--node-labels={label}=x]}}").encode())
    assert settings.labels == {label: "x"}
