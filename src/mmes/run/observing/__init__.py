"""What is seen of a run: progress for callbacks, a line on the screen, the history."""
