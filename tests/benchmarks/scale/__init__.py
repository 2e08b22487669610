"""The benchmark of large clusters: whole cycles of the functions, each function in a process of its own."""
