"""The laboratory: plans, resumable runs, statistics, tables, figures, the paper section by section."""
