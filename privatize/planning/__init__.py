"""How many pairs, which order statistic, and what answers cost together: pure arithmetic."""
