"""What a person sees of a private function's settings."""

from privatize.display.cards import Card
from privatize.display.figures import promise
from privatize.function.settings import Settings


def function_card(signature: str, settings: Settings) -> Card:
    """Return a private function's promise as a card."""
    s = settings
    clipped = "are brought into P's support" if s.domain == "clip" else "are taken as they are"
    rows = [
        ("promise", promise(s.epsilon, s.delta, s.gamma)),
        ("mechanism", repr(s.mechanism)),
        ("P", "that of sealed data" if s.sampler is None else repr(s.sampler)),
        ("private records", clipped),
        *s.plan.rows()[:2],
    ]
    if s.budget is not None:
        rows.append(("budget", repr(s.budget)))
    return Card(f"private {signature}", rows)
