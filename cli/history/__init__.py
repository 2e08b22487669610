"""`joiner history`: the workload history, built from decision records, and shown."""
