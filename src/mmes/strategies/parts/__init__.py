"""Common parts of the strategies: archive, states, recombination, step sizes, population."""
