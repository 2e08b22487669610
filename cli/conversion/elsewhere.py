"""Fields that stand elsewhere, or are called otherwise, in the API that an object names: what to do about each."""

from typing import Final

IN_TEMPLATE: Final = {
    "kubeletConfiguration": "write it as kubelet",
    "provider": "write nodeClassRef, and an EC2NodeClass",
    "providerRef": "write it as nodeClassRef",
    "expireAfter": "write it under spec.disruption, or the whole as karpenter.sh/v1",
    "terminationGracePeriod": "write the whole as karpenter.sh/v1, which has it",
    "instanceTypes": "write a requirement: {key: node.kubernetes.io/instance-type, operator: In, values: [...]}",
    "labels": "write it under spec.template.metadata",
    "annotations": "write it under spec.template.metadata",
    "limits": "write it under spec",
    "disruption": "write it under spec",
}
IN_POOL: Final = {
    "consolidation": "write disruption: {consolidationPolicy: WhenUnderutilized}",
    "kubeletConfiguration": "write it as spec.template.spec.kubelet",
    "provider": "write spec.template.spec.nodeClassRef, and an EC2NodeClass",
    "providerRef": "write it as spec.template.spec.nodeClassRef",
    "ttlSecondsAfterEmpty": "write disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}",
    "ttlSecondsUntilExpired": "write disruption: {expireAfter: 720h}",
    "expireAfter": "write it under spec.disruption",
    "labels": "write it under spec.template.metadata",
    "annotations": "write it under spec.template.metadata",
} | dict.fromkeys(
    ("requirements", "taints", "startupTaints", "nodeClassRef", "kubelet"), "write it under spec.template.spec"
)
IN_PROVISIONER: Final = {
    "resources": "write it under limits, two spaces further in",
    "nodeClassRef": "write it as providerRef, which names an AWSNodeTemplate",
    "kubelet": "write it as kubeletConfiguration",
    "template": "its fields are of a NodePool: write the whole as karpenter.sh/v1",
    "disruption": "its fields are of a NodePool: write consolidation, ttlSecondsAfterEmpty, ttlSecondsUntilExpired",
    "instanceTypes": "write a requirement: {key: node.kubernetes.io/instance-type, operator: In, values: [...]}",
    "zones": "write a requirement: {key: topology.kubernetes.io/zone, operator: In, values: [...]}",
    "architectures": "write a requirement: {key: kubernetes.io/arch, operator: In, values: [...]}",
    "operatingSystems": "write a requirement: {key: kubernetes.io/os, operator: In, values: [...]}",
    "cluster": "remove it: functions know their cluster",
}
IN_TEMPLATE_CLASS: Final = {
    "subnetSelectorTerms": "write subnetSelector: {KEY: VALUE}, or the whole as EC2NodeClass of karpenter.k8s.aws/v1",
    "securityGroupSelectorTerms": "write securityGroupSelector: {KEY: VALUE}, or the whole as EC2NodeClass",
    "amiSelectorTerms": "write amiSelector: {KEY: VALUE}, or the whole as EC2NodeClass of karpenter.k8s.aws/v1",
    "capacityTypes": "write a requirement of the Provisioner: {key: karpenter.sh/capacity-type, operator: In, ...}",
    "cluster": "remove it: functions know their cluster",
    "requirements": "write it into the Provisioner",
    "labels": "write it into the Provisioner",
    "taints": "write it into the Provisioner",
}
IN_CLASS: Final = {
    "subnetSelector": "write subnetSelectorTerms: [{tags: {KEY: VALUE}}]",
    "securityGroupSelector": "write securityGroupSelectorTerms: [{tags: {KEY: VALUE}}]",
    "amiSelector": "write amiSelectorTerms: [{tags: {KEY: VALUE}}], or {id: ami-...}",
    "kubelet": "write it into the NodePool, or the whole as karpenter.k8s.aws/v1, which has it",
    "kubeletConfiguration": "write it into the NodePool, as kubelet",
    "launchTemplate": "nobody's own launch template can be used any more: write what it says here",
}
IN_TERM: Final = {
    "alias": "write the whole as karpenter.k8s.aws/v1, which has it",
    "tag": "write tags: {KEY: VALUE}",
    "ids": "write a term with `id` for each",
}
