"""From single runs to statistics, tables, charts and standings."""
