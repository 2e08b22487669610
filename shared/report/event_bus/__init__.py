"""Events on an EventBridge event bus, derived from journal entries."""
