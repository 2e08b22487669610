"""Decisions (pure): from one cluster snapshot to actions."""
