"""Single runs on disk: the store, its formats, and their exchange."""
