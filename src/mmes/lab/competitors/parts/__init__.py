"""Common parts of the competitors: draws, grouping, local searches, differential evolution."""
