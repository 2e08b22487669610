"""The fleet document: nodes, pods and decisions over time, for the pages of demo, report and ui."""
