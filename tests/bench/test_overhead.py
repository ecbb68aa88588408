"""What is compared in turn: each round has both, and neither always begins."""

from bench.overhead import in_turn


async def test_who_begins_changes_from_round_to_round() -> None:
    asked: list[str] = []

    async def direct() -> float:
        asked.append("direct")
        return float(len(asked))

    async def served() -> float:
        asked.append("served")
        return float(len(asked))

    assert await in_turn(direct, served, rounds=2, settle_s=0) == [(1.0, 2.0), (4.0, 3.0)]
    assert asked == ["direct", "served", "served", "direct"]
