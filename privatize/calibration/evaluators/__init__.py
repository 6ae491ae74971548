"""Evaluators turn pairs into gaps: plainly, with `pair=`, in batches, or for sums over records."""
