"""What the strategies share: archive, states, recombination, step sizes, population."""
