"""What knows nothing of optimization: options, random numbers, memory, loading, extras."""
