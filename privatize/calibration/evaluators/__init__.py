"""Evaluators turn pairs into gaps: one by one, with `pair=`, in batches, or for sums over records."""
