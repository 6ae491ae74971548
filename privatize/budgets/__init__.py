"""Budgets, the ledger of what was spent from them, and sealed data."""
