"""The laboratory: plans, resumable runs, statistics, tables, figures, the sections of the paper."""
