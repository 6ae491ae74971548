"""A private function's promise, as one page."""
