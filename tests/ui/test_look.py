"""The style sheets: one design, whose colours, text sizes, corners and distances stand in tokens.css.

And colours can be told apart.
"""

import re
from pathlib import Path

import pytest

UI = Path(__file__).parent.parent.parent / "ui"
TOKENS = (UI / "static/tokens.css").read_text(encoding="utf-8")
COLOUR = r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl|lab|lch|oklab|oklch)a?\(|:\s*(?:white|black|gr[ae]y|red|green|blue)\b(?!-)"
SIZE = r"(?:font|font-size|border(?:-\w+)*-radius):[^;}]*\d(?:px|rem)"
DISTANCE = r"(?<![\w-])(?:scroll-)?(?:margin|padding|gap|row-gap|column-gap)(?:-[\w-]+)?:([^;}]*)"
LENGTH = r"-?\d*\.?\d+(?:px|rem)\b"  # in em and vh they go with the text or the window
LINES = {"1px", "-1px"}  # as wide as a line that is drawn there
ROOM = {  # kept free for what stands there, and is as large as its text
    "1.75rem": "the arrow of a choice, a chat's place in a folder, the figures beside a chart",
    "2rem": "a key in a field",
    "2.1rem": "a sign in a field",
    "2.25rem": "the button of a row",
    "2.5rem": "the figures beside a chart",
    "-2.5rem": "what begins above those figures",
    "4.5rem": "the bar above an opened exchange",
    "6rem": "the bar below it",
}
NEEDED = 3  # the contrast of what shows where a field is (WCAG 2.2, 1.4.11)


@pytest.mark.parametrize("path", sorted(UI.glob("static/*.css")), ids=lambda path: path.name)
def test_colours_text_sizes_and_corners_stand_in_the_tokens_alone(path: Path) -> None:
    if path.name != "tokens.css":
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert re.findall(f"{COLOUR}|{SIZE}", text) == []


def test_distances_are_of_the_scale() -> None:
    found = set[str]()
    for path in sorted(UI.glob("static/*.css")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        lengths = {length for distance in re.findall(DISTANCE, text) for length in re.findall(LENGTH, distance)}
        assert lengths <= LINES | ROOM.keys(), path.name
        found |= lengths
    assert found == LINES | ROOM.keys()


@pytest.mark.parametrize("path", sorted(UI.rglob("*.js")), ids=lambda path: str(path.relative_to(UI)))
def test_a_script_has_no_colours(path: Path) -> None:
    assert re.findall(r"[\"'`:]#[0-9a-fA-F]{3,8}\b|\brgba?\(", path.read_text(encoding="utf-8")) == []


def test_every_token_that_is_used_is_there_and_every_one_is_used() -> None:
    sheets = "".join(path.read_text(encoding="utf-8") for path in UI.rglob("*.css"))
    used = set(re.findall(r"var\((--[\w-]+)", sheets)) - {"--top", "--left"}  # these are places, set by a script
    used |= set(re.findall(r"var\((--[\w-]+)", (UI / "theme.py").read_text(encoding="utf-8")))
    assert used == set(re.findall(r"(--[\w-]+):", TOKENS))


def test_dark_is_the_same_by_choice_and_by_the_system() -> None:
    assert _colours("body--dark") == _colours("body--system")
    assert _colours("body--dark").keys() == _colours("root").keys()


@pytest.mark.parametrize("theme", ["root", "body--dark"])
@pytest.mark.parametrize("around", ["page", "panel", "raised"])
def test_a_field_can_be_told_from_what_is_around_it(theme: str, around: str) -> None:
    colours = _colours(theme)
    lighter, darker = sorted((_luminance(colours["field-line"]), _luminance(colours[around])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= NEEDED


def _colours(theme: str) -> dict[str, str]:
    block = re.search(rf"[:.]{theme} {{(.*?)}}", TOKENS, re.DOTALL)
    assert block
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block[1]))


def _luminance(colour: str) -> float:
    """By the definition of WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
