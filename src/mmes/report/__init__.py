"""One self-contained HTML file about a set of runs or about a single run."""
