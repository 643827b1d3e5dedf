"""One run, from what was asked to its result."""
