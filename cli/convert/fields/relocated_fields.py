"""Fixes for fields that have another place or name in the API that an object names."""

from typing import Final

FIXES_IN_TEMPLATE: Final = {
    "kubeletConfiguration": "write it as kubelet",
    "provider": "write nodeClassRef, and an EC2NodeClass",
    "providerRef": "write it as nodeClassRef",
    "expireAfter": "move it to spec.disruption, or the object as karpenter.sh/v1",
    "terminationGracePeriod": "write the object as karpenter.sh/v1, which has it",
    "instanceTypes": "write a requirement: {key: node.kubernetes.io/instance-type, operator: In, values: [...]}",
    "labels": "move it to spec.template.metadata",
    "annotations": "move it to spec.template.metadata",
    "limits": "move it to spec",
    "disruption": "move it to spec",
}
FIXES_IN_NODE_POOL: Final = {
    "consolidation": "write disruption: {consolidationPolicy: WhenUnderutilized}",
    "kubeletConfiguration": "write it as spec.template.spec.kubelet",
    "provider": "write spec.template.spec.nodeClassRef, and an EC2NodeClass",
    "providerRef": "write it as spec.template.spec.nodeClassRef",
    "ttlSecondsAfterEmpty": "write disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}",
    "ttlSecondsUntilExpired": "write disruption: {expireAfter: 720h}",
    "expireAfter": "move it to spec.disruption",
    "labels": "move it to spec.template.metadata",
    "annotations": "move it to spec.template.metadata",
} | dict.fromkeys(
    ("requirements", "taints", "startupTaints", "nodeClassRef", "kubelet"), "move it to spec.template.spec"
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
    "resources": "move it to limits (indent by two more spaces)",
    "nodeClassRef": "write it as providerRef, which names an AWSNodeTemplate",
    "kubelet": "write it as kubeletConfiguration",
    "template": "is a field of NodePool: write the object as karpenter.sh/v1",
    "disruption": "is a field of NodePool: write consolidation, ttlSecondsAfterEmpty, ttlSecondsUntilExpired",
    "instanceTypes": "write a requirement: {key: node.kubernetes.io/instance-type, operator: In, values: [...]}",
    "zones": "write a requirement: {key: topology.kubernetes.io/zone, operator: In, values: [...]}",
    "architectures": "write a requirement: {key: kubernetes.io/arch, operator: In, values: [...]}",
    "operatingSystems": "write a requirement: {key: kubernetes.io/os, operator: In, values: [...]}",
    "cluster": "move it to provider, or remove it: Joiner knows its cluster",
    "expireAfter": "write ttlSecondsUntilExpired: 2592000",
    "consolidationPolicy": "write consolidation: {enabled: true}, or ttlSecondsAfterEmpty: 30",
    "consolidateAfter": "write ttlSecondsAfterEmpty: 30",
    "budgets": "write the object as karpenter.sh/v1, which has them under spec.disruption",
} | dict.fromkeys(_NODE_CLASS_FIELDS, "move it to the AWSNodeTemplate, or under provider")
FIXES_IN_CONSOLIDATION: Final = {
    "ttlSecondsAfterEmpty": "move it to spec",
    "ttlSecondsUntilExpired": "move it to spec",
    "consolidationPolicy": "write consolidation: {enabled: true}",
}
FIXES_IN_DISRUPTION: Final = {
    "consolidation": "write consolidationPolicy: WhenUnderutilized",
    "ttlSecondsAfterEmpty": "write consolidationPolicy: WhenEmpty and consolidateAfter: 30s",
    "ttlSecondsUntilExpired": "write expireAfter: 720h",
    "terminationGracePeriod": "write the object as karpenter.sh/v1, which has it under spec.template.spec",
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
FIXES_AT_ROOT: Final = dict.fromkeys(_SPEC_FIELDS, "move it to spec (indent by two more spaces)") | dict.fromkeys(
    ("name", "labels", "annotations", "namespace"), "move it to metadata (indent by two more spaces)"
)
FIXES_IN_V1: Final = {
    "consolidation": "write spec.disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s}",
    "kubeletConfiguration": "write it as spec.kubelet of the EC2NodeClass",
    "provider": "write spec.template.spec.nodeClassRef, and an EC2NodeClass",
    "providerRef": "write spec.template.spec.nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: NAME}",
    "ttlSecondsAfterEmpty": "write spec.disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}",
    "ttlSecondsUntilExpired": "write spec.template.spec.expireAfter: 720h",
    "expireAfter": "move it to spec.template.spec",
    "terminationGracePeriod": "move it to spec.template.spec",
    "subnetSelector": "write subnetSelectorTerms: [{tags: {KEY: VALUE}}]",
    "securityGroupSelector": "write securityGroupSelectorTerms: [{tags: {KEY: VALUE}}]",
    "amiSelector": "write amiSelectorTerms: [{tags: {KEY: VALUE}}], or [{id: ami-...}]",
    "launchTemplate": "launch templates are no longer supported: write their settings here",
    "launchTemplateName": "launch templates are no longer supported: write their settings here",
} | dict.fromkeys(("requirements", "taints", "startupTaints", "nodeClassRef"), "move it to spec.template.spec")
"""Fields of older APIs in v1 objects."""
FIXES_IN_NODE_TEMPLATE: Final = {
    "subnetSelectorTerms": "write subnetSelector: {KEY: VALUE}, or the object as EC2NodeClass of karpenter.k8s.aws/v1",
    "securityGroupSelectorTerms": "write securityGroupSelector: {KEY: VALUE}, or the object as EC2NodeClass",
    "amiSelectorTerms": "write amiSelector: {KEY: VALUE}, or the object as EC2NodeClass of karpenter.k8s.aws/v1",
    "capacityTypes": "write a requirement of the Provisioner: {key: karpenter.sh/capacity-type, operator: In, ...}",
    "cluster": "remove it: Joiner knows its cluster",
    "requirements": "move it to the Provisioner",
    "labels": "move it to the Provisioner",
    "taints": "move it to the Provisioner",
}
FIXES_IN_NODE_CLASS: Final = {
    "subnetSelector": "write subnetSelectorTerms: [{tags: {KEY: VALUE}}]",
    "securityGroupSelector": "write securityGroupSelectorTerms: [{tags: {KEY: VALUE}}]",
    "amiSelector": "write amiSelectorTerms: [{tags: {KEY: VALUE}}], or {id: ami-...}",
    "kubelet": "move it to the NodePool, or the object as karpenter.k8s.aws/v1, which has it",
    "kubeletConfiguration": "move it to the NodePool, as kubelet",
    "launchTemplate": "launch templates are no longer supported: write their settings here",
}
FIXES_IN_TERM: Final = {
    "alias": "write the object as karpenter.k8s.aws/v1, which has it",
    "tag": "write tags: {KEY: VALUE}",
    "ids": "write a term with `id` for each",
}
