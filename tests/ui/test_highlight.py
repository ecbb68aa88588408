from ui.components.highlight import marked


def test_every_hit_of_every_word_is_marked_and_nothing_is_lost() -> None:
    assert marked("今天天气很好", "天气") == [("今天", False), ("天气", True), ("很好", False)]
    assert marked("Zebras, a ZEBRA", "zebra a") == [
        ("Zebra", True),
        ("s, ", False),
        ("a", True),
        (" ", False),
        ("ZEBRA", True),
    ]
    assert marked("a+b <b>", "+ <") == [("a", False), ("+", True), ("b ", False), ("<", True), ("b>", False)]


def test_of_two_words_at_one_place_the_longer_is_marked() -> None:
    assert marked("searching", "sea search") == [("search", True), ("ing", False)]


def test_without_words_nothing_is_marked() -> None:
    assert marked("text", " ") == [("text", False)]
    assert marked("", "word") == []
