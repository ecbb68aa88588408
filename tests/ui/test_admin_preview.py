"""What other limits would change, said before they are set."""

from dataclasses import replace

from engine.gate import Gate, Limits
from ui.i18n import language
from ui.limits import LiveLimits
from ui.pages.admin.preview import preview

SAY, NAMES = language("en"), {name: name.title() for name in ("ada", "bob", "carol", "dora", "eve", "finn", "gus")}
NOW = LiveLimits(concurrent=1, waiting=50, per_person=5, max_new_tokens=100)


def gate(*people: str | None, concurrent: int = 1) -> Gate:
    line = Gate(Limits(concurrent, 50, 5))
    for person in people:
        line.enter(person, now=0)
    return line


def told(line: Gate, **changes: int) -> list[str]:
    return preview(SAY, line, NOW, replace(NOW, **changes), NAMES, now_s=0)


def test_more_places_name_those_who_start_and_leave_the_gate_as_it_is() -> None:
    line = gate("ada", "bob", None, "carol")
    assert told(line, concurrent=3) == ["Starts at once: Bob, fixed key."]
    assert (len(line.running), line.waiting, line.limits.concurrent) == (1, 3, 1)


def test_many_are_counted() -> None:
    line = gate("ada", "bob", "carol", "dora", "eve", "finn", "gus")
    assert told(line, concurrent=9) == ["Starts at once: Bob, Carol, Dora, Eve, Finn and 1 more."]


def test_fewer_places_stop_nobody() -> None:
    line = gate("ada", "bob", "carol", concurrent=3)
    [sentence] = preview(SAY, line, replace(NOW, concurrent=3), NOW, NAMES, now_s=0)
    assert sentence.startswith("2 more run than may then: nobody is stopped")


def test_a_shorter_queue_and_a_smaller_share_say_whom_they_meet() -> None:
    line = gate("ada", "ada", "bob")
    assert told(line, waiting=2) == ["The queue is full then: new requests are refused until one has started."]
    assert told(line, per_person=2) == ["Must wait before asking more: Ada."]
    line.own_limits = {"ada": 9}
    assert told(line, per_person=2) == ["It would change nothing for those who are here now."]


def test_the_wait_of_the_last_in_line_is_told() -> None:
    line = gate("ada", "bob", "carol", "dora", "eve")
    line.measure(60)
    assert told(line, concurrent=2)[1] == "The last in line waits about 2 minutes instead of 4 minutes."


def test_tokens_hold_for_new_answers_and_the_same_limits_change_nothing() -> None:
    assert told(gate(), max_new_tokens=2000) == [
        "New answers have at most 2,000 tokens; those that run keep their limit."
    ]
    assert told(gate("ada")) == ["Nothing would change."]
