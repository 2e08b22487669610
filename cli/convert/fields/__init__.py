"""Conversion of single fields: requirements, kubelet, disruption, selectors, devices."""
