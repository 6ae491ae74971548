"""Any output as one flat vector and a public structure, and back."""
