"""Stored amounts that count against limits: reservations of launches, and what the clusters of a group use."""
