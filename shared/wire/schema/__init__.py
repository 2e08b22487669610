"""Types of the JSON that we read, camelCase, only the fields that we use."""
