"""The trace of a pod from Pending to Running: built from the journal, printed as a waterfall, exported as OTLP."""
