"""What the competitors share: draws, grouping, local searches, differential evolution."""
