"""Which model runs, why, how large it is, and how full its KV cache is: as tiles, in the reader's language."""

from engine.backends import Backend, KnowsCache, KnowsGuesses, KnowsMemory
from ui.components.figures import Part, Tile
from ui.engine_words import in_words
from ui.i18n import Language
from ui.pages.admin.tiles import GIB, NOTHING, duration


def model(say: Language, backend: Backend, *, cache: bool = True) -> list[Tile]:
    """What fits into one row, with how full the KV cache is or without."""
    context = say.number(backend.context_tokens) if backend.context_tokens else NOTHING
    return [
        Tile(label=say("Model"), value=backend.model or NOTHING, note=in_words(say, backend.reason), wide=True),
        _weights(say, backend),
        Tile(label=say("Context"), value=context, unit=say("tokens")),
        *_cache(say, backend)[: None if cache else 1],
        *(_guesses(say, backend) if cache else ()),
    ]


def loaded_in(say: Language, load_s: float | None, warm_up_s: float | None) -> Tile:
    value = duration(say, load_s) if load_s is not None else NOTHING
    note = say("of it {n} to warm up", n=duration(say, warm_up_s)) if warm_up_s else ""
    return Tile(label=say("Loaded in"), value=value, note=note)


def _weights(say: Language, backend: Backend) -> Tile:
    """How large they are, where that is known, and of how many bits."""
    bits, kind = {"nf4": ("4", say("bits, NF4")), "none": ("16", say("bits"))}.get(backend.quantization, (NOTHING, ""))
    if isinstance(backend, KnowsMemory) and backend.weights_bytes:
        size = say.number(backend.weights_bytes / GIB, 2)
        return Tile(label=say("Weights"), value=size, unit="GiB", note=f"{bits} {kind}" if kind else "")
    return Tile(label=say("Quantisation"), value=bits, unit=kind)


def _cache(say: Language, backend: Backend) -> list[Tile]:
    """Slots, and the KV cache by what holds it; a backend that does not tell has places alone."""
    use = backend.cache_use() if isinstance(backend, KnowsCache) else None
    if use is None:
        places = say.number(backend.capacity) if backend.capacity else NOTHING
        return [Tile(label=say("Slots"), value=places)]
    share = (use.used + use.kept) / use.room if use.room else 0.0
    return [
        Tile(
            label=say("Slots"),
            value=say.number(use.slots_used),
            unit=say("of {n}", n=say.number(use.slots)),
            parts=(Part(use.slots_used / use.slots if use.slots else 0.0),),
        ),
        Tile(
            label=say("KV cache"),
            value=say.number(100 * share, 0 if share >= 0.1 else 1),
            unit="%",
            note=say("of {n} tokens", n=say.number(use.room)),
            parts=(
                Part(use.used / use.room, say("running {n}", n=say.number(use.used))),
                Part(use.kept / use.room, say("kept {n}", n=say.number(use.kept)), "second"),
            )
            if use.room
            else (),
        ),
    ]


def _guesses(say: Language, backend: Backend) -> list[Tile]:
    """What speculative decoding comes to; nothing before the first guess, and where nothing is guessed."""
    guesses = backend.guesses() if isinstance(backend, KnowsGuesses) else None
    if guesses is None or not guesses.guessed:
        return []
    share = guesses.right / guesses.guessed
    note = say("of {n} guessed tokens", n=say.number(guesses.guessed))
    return [
        Tile(
            label=say("Guesses that were right"),
            value=say.number(100 * share),
            unit="%",
            note=note,
            parts=(Part(share),),
        )
    ]
