"""Conversion of whole objects: NodePools, EC2NodeClasses, workloads, global settings."""
