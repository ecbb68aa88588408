"""What a comparison came to: each peer's speed, and how many times as fast Qdesk is, beside what is wanted of it.

Knows figures and names, and nothing of how they were measured.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from bench.load import Figures

QDESK = "qdesk"  # over HTTP, as the peers


class Load(NamedTuple):
    """So many answers at once, of so many tokens each."""

    streams: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.streams} x {self.tokens}"


Found = Figures | str  # the string says why there are no figures
WANTED = {  # by streams and peer: how many times as fast Qdesk is to be at least
    (1, "llama-cpp-python"): 0.95,
    (1, "transformers serve"): 2.1,
    (8, "transformers serve"): 2.1,
    (8, "naive"): 13.0,
    (16, "transformers serve"): 1.9,
}


@dataclass(slots=True)
class Comparison:
    loads: list[Load]
    found: dict[str, dict[Load, Found]] = field(default_factory=dict)  # by peer, in their order
    left_out: dict[str, str] = field(default_factory=dict)  # by peer: why it has no figures, or no more of them

    def ratio(self, load: Load, peer: str) -> float | None:
        """How many times as fast as this peer; None where one of the two has no figures."""
        ours, theirs = self.found.get(QDESK, {}).get(load), self.found[peer].get(load)
        if isinstance(ours, Figures) and isinstance(theirs, Figures):
            return ours.tokens_per_s / theirs.tokens_per_s
        return None

    def tables(self) -> str:
        """In Markdown: tokens per second over all streams with the median time to first token, then the ratios."""
        speeds = self._table("tokens/s (time to first token)", list(self.found), self._speed)
        ratios = self._table("Qdesk over", [peer for peer in self.found if peer != QDESK], self._ratio)
        failures = [
            f"{peer}, {load}, {found}."
            for peer, cells in self.found.items()
            for load, found in cells.items()
            if isinstance(found, str)
        ]
        left_out = [f"Left out: {peer} ({reason})." for peer, reason in self.left_out.items()]
        return "\n\n".join([speeds, ratios, *failures, *left_out])

    def as_json(self) -> dict[str, Any]:
        """Every figure and ratio by peer and load."""
        figures = {
            peer: {str(load): found if isinstance(found, str) else asdict(found) for load, found in cells.items()}
            for peer, cells in self.found.items()
        }
        ratios = {
            peer: {str(load): ratio for load in cells if (ratio := self.ratio(load, peer)) is not None}
            for peer, cells in self.found.items()
            if peer != QDESK
        }
        return {"peers": figures, "qdesk over": ratios, "left out": self.left_out}

    def _table(self, title: str, peers: list[str], cell: Callable[[Load, str], str]) -> str:
        head = f"| {title} | {' | '.join(peers)} |\n{'|---' * (len(peers) + 1)}|"
        rows = [f"| {load} | {' | '.join(cell(load, peer) for peer in peers)} |" for load in self.loads]
        return "\n".join([head, *rows])

    def _speed(self, load: Load, peer: str) -> str:
        found = self.found[peer].get(load)
        if not isinstance(found, Figures):
            return "failed" if found else ""
        return f"{found.tokens_per_s:.1f}" + (f" ({found.ttft_median_s:.2f} s)" if found.ttft_median_s else "")

    def _ratio(self, load: Load, peer: str) -> str:
        ratio, wanted = self.ratio(load, peer), WANTED.get((load.streams, peer))
        shown = "" if ratio is None else f"{ratio:.2f}"
        return f"{shown} (wanted {wanted:g})".strip() if wanted else shown
