"""Which tokens go into a step, played through without a model: a step costs what `Costs` says."""

from engine.backends.qwen2.scheduler import FEWEST, MOST, PATIENCE, SPARE, Costs, Scheduler, Sequence


def sequence(tokens: int, at: float = 0.0) -> Sequence:
    return Sequence(tokens=[0] * tokens, arrived_at=at)


def streaming() -> Sequence:
    return Sequence(tokens=[0] * 10, arrived_at=0.0, slotted=True, computed=9)


def take_slot(sequence: Sequence) -> bool:
    sequence.slotted = True
    return True


def scheduler() -> Scheduler:
    return Scheduler(Costs(row_s=0.003, decode_s={1: 0.02, 8: 0.04}))


def run(policy: Scheduler, sequences: list[Sequence]) -> dict[Sequence, int]:
    """One step: what was planned is computed, and whoever streams has a next token."""
    plan = policy.schedule(sequences, take_slot)
    for one, count in plan.items():
        one.computed += count
        if not one.pending:
            one.tokens.append(0)
    return plan


def test_every_decode_is_in_every_step_beside_a_bounded_piece_of_prefill() -> None:
    policy, answers, long = scheduler(), [streaming() for _ in range(8)], sequence(3500)
    steps = 0
    while long.pending > 1:
        plan = run(policy, [*answers, long])
        assert all(plan[answer] == 1 for answer in answers)
        ends = long.pending == 1  # its first token is the next decode
        patience = PATIENCE * (1 + SPARE if ends else 1)
        assert plan[long] * policy.costs.row_s <= patience * policy.costs.decodes(8)
        steps += 1
    assert steps > 100


def test_a_short_prompt_passes_a_long_one_that_still_goes_on() -> None:
    policy, long = scheduler(), sequence(3500)
    run(policy, [long])
    before = long.computed
    short = sequence(30, at=1.0)
    steps = 0
    while short.pending > 1:
        run(policy, [long, short])
        steps += 1
    assert steps == 1
    assert long.computed > before


def test_a_long_prompt_comes_to_its_end_under_a_flood_of_short_ones() -> None:
    policy, long = scheduler(), sequence(3500)
    for step in range(1000):
        flood = [sequence(50, at=step + 1.0) for _ in range(20)]
        run(policy, [long, *flood])
        if long.pending == 1:
            break
    assert step < 5 * 3500 / policy.budget(0)


def test_the_budget_stays_within_its_bounds() -> None:
    assert Scheduler(Costs(row_s=1e-7)).budget(0) == MOST
    assert Scheduler(Costs(row_s=10.0)).budget(0) == FEWEST
    assert Scheduler(Costs(row_s=0.001)).budget(4) == FEWEST  # decodes that were never measured


def test_nobody_starts_without_a_slot() -> None:
    waiting = sequence(100)
    assert scheduler().schedule([waiting], lambda _: False) == {}
    cached = Sequence(tokens=[0] * 100, arrived_at=0.0)

    def take_cached(sequence: Sequence) -> bool:
        sequence.slotted, sequence.computed = True, 99
        return True

    assert scheduler().schedule([cached], take_cached) == {cached: 1}


def test_costs_are_learnt_from_steps() -> None:
    costs = Costs(row_s=0.1)
    for _ in range(50):
        costs.learn(decodes=8, prefill=0, seconds=0.04)
        costs.learn(decodes=8, prefill=20, seconds=0.04 + 20 * 0.003)
    assert abs(costs.decodes(8) - 0.04) < 1e-6
    assert abs(costs.decodes(5) - 0.04) < 1e-6  # the nearest that is known
    assert abs(costs.row_s - 0.003) < 1e-4
    assert abs(costs.decodes(60) - (0.04 + 52 * 0.003)) < 0.006  # and what each row beyond it costs


def test_small_pieces_of_a_prompt_do_not_seem_dear() -> None:
    """A machine on which a step reads the weights for 70 ms: the pieces stay as large as half a second allows."""
    policy = Scheduler(Costs(decode_s={1: 0.07}))
    for _ in range(50):
        piece = policy.budget(0)
        policy.costs.learn(decodes=0, prefill=piece, seconds=0.07 + piece * 0.006)
    assert 60 <= policy.budget(0) <= 75


def test_a_prompt_that_nearly_fits_into_a_step_takes_no_second_one() -> None:
    policy = scheduler()
    room = policy.budget(0)
    nearly, longer = sequence(int(1.2 * room)), sequence(2 * room)
    assert policy.schedule([nearly], take_slot) == {nearly: int(1.2 * room)}
    assert policy.schedule([longer], take_slot) == {longer: room}
