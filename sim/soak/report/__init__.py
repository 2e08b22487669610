"""Results of simulated weeks: figures, table and plot."""
