"""Measure whether the promise of a private function is true."""
