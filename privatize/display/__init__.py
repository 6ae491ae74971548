"""Charts and cards: what a person sees. Knows no class of ours."""
