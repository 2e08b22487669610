"""Events of a script, and their execution in the embedded world."""
