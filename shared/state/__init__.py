"""The cluster snapshot, indexed: state nodes, PDB limits, prices, nominations, pauses."""
