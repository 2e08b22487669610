"""Machinery that controllers share: informer, queue, conditions, templates."""
