"""Sentences that the engine makes, in the reader's language.

The engine knows no languages: programs and logs get its English. Pages pass what it says through `in_words`; what is
not known here (an error of a driver, say) stays as it is.
"""

import re
from functools import cache

from ui.i18n import Language

SENTENCES = (
    # why this model
    "A script plays the model.",
    "There is no such script.",
    "A model is being loaded already.",
    "QDESK_MODEL names the packaged model.",
    "QDESK_MODEL names the folder {path}.",
    "QDESK_MODEL names {name}.",
    "There is no CUDA device, so the small model runs.",
    "The GPU has only {free} free, so the small model runs.",
    "The GPU has {free} free, so the large model runs.",
    "{cause}, so the packaged model runs.",
    "Answers come from the server at {url}.",
    "Answers come from the servers at {urls}.",
    "{reason} This CPU cannot multiply 4-bit weights directly, so they are unpacked to float16 in memory.",
    # the machine
    "There is no NVIDIA driver on this machine.",
    "The NVIDIA driver sees no GPU.",
    "The NVIDIA driver does not work ({error}); see `nvidia-smi`.",
    "GPU {number} cannot be read any more ({error}); see `nvidia-smi` and the driver's log.",
    # how the server stands
    "The model is loading ({stage}).",
    "The server is going down; it takes no new requests.",
    "The server is drained: nothing runs or waits.",
    "An administrator has paused the server; it takes no new requests.",
    "The server finishes what it has and takes no new requests.",
    "The model could not be loaded: {error}",
    "The log cannot be written, so nothing is answered: {reason}",
    "Another model was loaded before this answer was finished.",
    "The disk is full.",
    "The database is locked by another program.",
    "Requests run, and nothing has come from the engine for more than {n} s.",
    "The engine has been in one step for {n} s; restart the server.",
    "The engine failed and cannot go on ({error}); restart the server.",
    # what loading is at
    "starting",
    "downloading",
    "checking",
    "reading the model",
    "quantising",
    "converting",
    "saving",
    "loading",
    "warming up",
    "waiting for another process that downloads the model",
    "asking the other server",
)


def in_words(say: Language, sentence: str) -> str:
    """The sentence in the reader's language, with what it holds in it."""
    for known, pattern in _patterns():
        if found := pattern.fullmatch(sentence):
            values = {name: in_words(say, value) for name, value in found.groupdict().items()}
            return say(known, **values)
    return sentence


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """The more of a sentence is fixed, the earlier it is tried."""
    ordered = sorted(SENTENCES, key=lambda sentence: len(re.sub(r"\{\w+\}", "", sentence)), reverse=True)
    return [(sentence, re.compile(_with_groups(sentence), re.DOTALL)) for sentence in ordered]


def _with_groups(sentence: str) -> str:
    parts = re.split(r"\{(\w+)\}", sentence)
    return "".join(f"(?P<{part}>.+?)" if place % 2 else re.escape(part) for place, part in enumerate(parts))
