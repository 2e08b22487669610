"""Fixes for fields that have another place or name in the API that an object names."""

from typing import Final

FIXES_IN_TEMPLATE: Final = {
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
FIXES_IN_NODE_POOL: Final = {
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
_NODE_CLASS_FIELDS: Final = (
    "amiFamily",
    "amiSelector",
    "blockDeviceMappings",
    "instanceProfile",
    "metadataOptions",
    "securityGroupSelector",
    "subnetSelector",
    "tags",
    "userData",
)
FIXES_IN_PROVISIONER: Final = {
    "resources": "write it under limits, two spaces further in",
    "nodeClassRef": "write it as providerRef, which names an AWSNodeTemplate",
    "kubelet": "write it as kubeletConfiguration",
    "template": "its fields are of a NodePool: write the whole as karpenter.sh/v1",
    "disruption": "its fields are of a NodePool: write consolidation, ttlSecondsAfterEmpty, ttlSecondsUntilExpired",
    "instanceTypes": "write a requirement: {key: node.kubernetes.io/instance-type, operator: In, values: [...]}",
    "zones": "write a requirement: {key: topology.kubernetes.io/zone, operator: In, values: [...]}",
    "architectures": "write a requirement: {key: kubernetes.io/arch, operator: In, values: [...]}",
    "operatingSystems": "write a requirement: {key: kubernetes.io/os, operator: In, values: [...]}",
    "cluster": "write it under provider, or remove it: functions know their cluster",
    "expireAfter": "write ttlSecondsUntilExpired: 2592000",
    "consolidationPolicy": "write consolidation: {enabled: true}, or ttlSecondsAfterEmpty: 30",
    "consolidateAfter": "write ttlSecondsAfterEmpty: 30",
    "budgets": "write the whole as karpenter.sh/v1, which has them under spec.disruption",
} | dict.fromkeys(_NODE_CLASS_FIELDS, "write it into the AWSNodeTemplate, or under provider")
FIXES_IN_CONSOLIDATION: Final = {
    "ttlSecondsAfterEmpty": "write it under spec",
    "ttlSecondsUntilExpired": "write it under spec",
    "consolidationPolicy": "write consolidation: {enabled: true}",
}
FIXES_IN_DISRUPTION: Final = {
    "consolidation": "write consolidationPolicy: WhenUnderutilized",
    "ttlSecondsAfterEmpty": "write consolidationPolicy: WhenEmpty and consolidateAfter: 30s",
    "ttlSecondsUntilExpired": "write expireAfter: 720h",
    "terminationGracePeriod": "write the whole as karpenter.sh/v1, which has it under spec.template.spec",
}
_SPEC_FIELDS: Final = (
    *_NODE_CLASS_FIELDS,
    "consolidation",
    "disruption",
    "kubeletConfiguration",
    "limits",
    "provider",
    "providerRef",
    "requirements",
    "role",
    "securityGroupSelectorTerms",
    "startupTaints",
    "subnetSelectorTerms",
    "taints",
    "template",
    "ttlSecondsAfterEmpty",
    "ttlSecondsUntilExpired",
    "weight",
)
FIXES_AT_ROOT: Final = dict.fromkeys(_SPEC_FIELDS, "write it under spec, two spaces further in") | dict.fromkeys(
    ("name", "labels", "annotations", "namespace"), "write it under metadata, two spaces further in"
)
FIXES_IN_V1: Final = {
    "consolidation": "write spec.disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s}",
    "kubeletConfiguration": "write it as spec.kubelet of the EC2NodeClass",
    "provider": "write spec.template.spec.nodeClassRef, and an EC2NodeClass",
    "providerRef": "write spec.template.spec.nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: NAME}",
    "ttlSecondsAfterEmpty": "write spec.disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}",
    "ttlSecondsUntilExpired": "write spec.template.spec.expireAfter: 720h",
    "expireAfter": "write it under spec.template.spec",
    "terminationGracePeriod": "write it under spec.template.spec",
    "subnetSelector": "write subnetSelectorTerms: [{tags: {KEY: VALUE}}]",
    "securityGroupSelector": "write securityGroupSelectorTerms: [{tags: {KEY: VALUE}}]",
    "amiSelector": "write amiSelectorTerms: [{tags: {KEY: VALUE}}], or [{id: ami-...}]",
    "launchTemplate": "nobody's own launch template can be used any more: write what it says here",
    "launchTemplateName": "nobody's own launch template can be used any more: write what it says here",
} | dict.fromkeys(("requirements", "taints", "startupTaints", "nodeClassRef"), "write it under spec.template.spec")
"""Fields of older APIs in v1 objects."""
FIXES_IN_NODE_TEMPLATE: Final = {
    "subnetSelectorTerms": "write subnetSelector: {KEY: VALUE}, or the whole as EC2NodeClass of karpenter.k8s.aws/v1",
    "securityGroupSelectorTerms": "write securityGroupSelector: {KEY: VALUE}, or the whole as EC2NodeClass",
    "amiSelectorTerms": "write amiSelector: {KEY: VALUE}, or the whole as EC2NodeClass of karpenter.k8s.aws/v1",
    "capacityTypes": "write a requirement of the Provisioner: {key: karpenter.sh/capacity-type, operator: In, ...}",
    "cluster": "remove it: functions know their cluster",
    "requirements": "write it into the Provisioner",
    "labels": "write it into the Provisioner",
    "taints": "write it into the Provisioner",
}
FIXES_IN_NODE_CLASS: Final = {
    "subnetSelector": "write subnetSelectorTerms: [{tags: {KEY: VALUE}}]",
    "securityGroupSelector": "write securityGroupSelectorTerms: [{tags: {KEY: VALUE}}]",
    "amiSelector": "write amiSelectorTerms: [{tags: {KEY: VALUE}}], or {id: ami-...}",
    "kubelet": "write it into the NodePool, or the whole as karpenter.k8s.aws/v1, which has it",
    "kubeletConfiguration": "write it into the NodePool, as kubelet",
    "launchTemplate": "nobody's own launch template can be used any more: write what it says here",
}
FIXES_IN_TERM: Final = {
    "alias": "write the whole as karpenter.k8s.aws/v1, which has it",
    "tag": "write tags: {KEY: VALUE}",
    "ids": "write a term with `id` for each",
}
