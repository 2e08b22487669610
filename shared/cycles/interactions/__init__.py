"""Requests to AWS and Kubernetes while a cycle decides, recorded for replay."""
