"""First-fit packing: feasibility, reserved capacity, results and failure reasons."""
