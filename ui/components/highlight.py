"""Which parts of a text a search has found: pieces that are shown as text, some of them marked."""

import re

Piece = tuple[str, bool]  # text, and whether it was looked for


def marked(text: str, query: str) -> list[Piece]:
    """The text cut at every hit of every word of the query, without regard to the case of letters."""
    words = sorted(set(query.split()), key=len, reverse=True)  # of two words at one place the longer one is marked
    if not words or not text:
        return [(text, False)] if text else []
    hits = re.split(f"({'|'.join(map(re.escape, words))})", text, flags=re.IGNORECASE)
    return [(piece, bool(at % 2)) for at, piece in enumerate(hits) if piece]
