"""Linear programs of the column generation, solved by the primal simplex method."""
