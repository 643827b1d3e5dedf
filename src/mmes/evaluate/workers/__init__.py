"""Worker processes: start, communication, supervision, replacement."""
