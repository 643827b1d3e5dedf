"""Code that is not specific to optimization: options, random numbers, memory, loading, extras."""
