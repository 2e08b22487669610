"""What `joiner doctor` looks at: facts in, findings out; nothing here asks anybody."""
