"""What was injected, and what went wrong."""

from __future__ import annotations

from collections import Counter

FAILURES = (
    "false success",
    "wrong bits",
    "hangs",
    "orphans",
    "crashes",
    "lost signals",
    "large",
    "other",
)


class Tally:
    """Counts the injections of each kind and the failures that followed."""

    def __init__(self) -> None:
        self.injected: Counter[str] = Counter()
        self.failed: Counter[tuple[str, str]] = Counter()
        self.stories: list[str] = []

    def inject(self, kind: str, count: int = 1) -> None:
        """Count what was done."""
        self.injected[kind] += count

    def fail(self, kind: str, failure: str, story: str) -> None:
        """Count what must not happen, and keep how it came about."""
        assert failure in FAILURES
        self.failed[kind, failure] += 1
        self.stories.append(f"{kind}: {failure}: {story}")
        print(f"FAILED {self.stories[-1]}", flush=True)

    def table(self) -> str:
        """Return the counts as a table in Markdown."""
        lines = [
            f"| what | injected | {' | '.join(FAILURES)} |",
            f"| --- | ---: |{' ---: |' * len(FAILURES)}",
        ]
        for kind in sorted(self.injected):
            failures = " | ".join(str(self.failed[kind, name]) for name in FAILURES)
            lines.append(f"| {kind} | {self.injected[kind]:,} | {failures} |")
        return "\n".join(lines)
