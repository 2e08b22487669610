"""`joiner replay`: a stored decision, made again with today's code or with changed objects."""
