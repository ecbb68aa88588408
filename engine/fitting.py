"""Whether a request can be answered at all, with how many tokens and by which seed: before anything is recorded.

Knows nothing of queues and jobs.
"""

import asyncio
import secrets
from dataclasses import replace

from loguru import logger

from engine.backends import Backend, ChecksRequests
from engine.errors import BackendFailed, ContextOverflow, EngineError
from engine.types import ChatRequest


async def fitted(request: ChatRequest, backend: Backend, most: int) -> ChatRequest:
    """The request with max_tokens set to what the server (`most`) and the context allow, and with a seed.

    Where chance is asked for and no seed is given, it is drawn here: what is logged then draws the same answer again.
    Raises ContextOverflow, InvalidRequest for what this backend cannot do, or BackendFailed.
    """
    try:
        prompt_tokens = await asyncio.to_thread(_read, request, backend)
    except EngineError:
        raise
    except Exception as error:
        logger.opt(exception=error).error("the tokens of request {} could not be counted", request.id)
        raise BackendFailed("The engine could not read this prompt.") from error
    room = backend.context_tokens - prompt_tokens
    if room < 1:
        raise ContextOverflow(prompt_tokens, backend.context_tokens)
    asked = request.sampling
    seed = secrets.randbits(31) if asked.seed is None and asked.temperature > 0 else asked.seed
    return replace(request, sampling=replace(asked, max_tokens=min(asked.max_tokens or most, most, room), seed=seed))


def _read(request: ChatRequest, backend: Backend) -> int:
    if isinstance(backend, ChecksRequests):
        backend.check(request)
    return backend.count_tokens(request.messages)
