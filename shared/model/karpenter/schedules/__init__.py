"""Schedules of NodePools and CapacityBuffers: windows of time with other values."""
