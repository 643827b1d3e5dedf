"""The shell around a search: ask and tell, pending rows, state, stop rules."""
