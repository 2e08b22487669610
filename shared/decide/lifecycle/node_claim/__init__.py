"""Steps of a living NodeClaim: registration, liveness, expiration, tagging, garbage collection."""
