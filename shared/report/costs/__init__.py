"""Costs: node lifetimes, the cost ledger, daily reports and notifications."""
