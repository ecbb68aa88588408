"""The peer to beat: one `generate` in a thread of its own for each request, behind a queue of fixed size.

This is how most first tutorials serve a model with FastAPI and transformers. It streams the OpenAI way, so that the
same load generator drives it, and it stops when the client has gone, which most tutorials do not.

    python bench/peers/naive.py MODEL_FOLDER --port 8081 --limit 16
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Callable
from threading import Event, Thread
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, TextIteratorStreamer

NF4 = BitsAndBytesConfig(
    load_in_4bit=True,
    bnb_4bit_quant_type="nf4",
    bnb_4bit_use_double_quant=True,
    bnb_4bit_compute_dtype=torch.bfloat16,
)


def create_app(folder: str, limit: int) -> FastAPI:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, quantization_config=NF4)
    places: asyncio.Queue[None] = asyncio.Queue(maxsize=limit)
    app = FastAPI()

    @app.get("/v1/models")
    def models() -> dict[str, object]:
        return {"object": "list", "data": [{"id": "naive", "object": "model"}]}

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        body = await request.json()
        if places.full():
            return JSONResponse({"error": {"message": "busy"}}, status_code=503)
        await places.put(None)
        inputs: Any = tokenizer.apply_chat_template(
            body["messages"], add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        streamer = TextIteratorStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
        wanted = body["max_tokens"]
        options = {"max_new_tokens": wanted, "min_new_tokens": wanted if body.get("ignore_eos") else 0}
        gone = Event()
        arguments = {
            **inputs,
            **options,
            "do_sample": False,
            "streamer": streamer,
            "stopping_criteria": [stop_if(gone)],
        }
        Thread(target=model.generate, kwargs=arguments, daemon=True).start()
        return StreamingResponse(events(streamer, gone), media_type="text/event-stream")

    async def events(streamer: TextIteratorStreamer, gone: Event) -> AsyncIterator[str]:
        try:
            while (text := await asyncio.to_thread(next, streamer, None)) is not None:
                yield f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n"
            yield "data: [DONE]\n\n"
        finally:
            gone.set()
            places.get_nowait()  # nothing can be awaited where the client has gone

    return app


def stop_if(gone: Event) -> Callable[..., torch.Tensor]:
    """A criterion of `generate`, which wants an answer for each of its rows."""

    def stop(tokens: torch.Tensor, scores: object) -> torch.Tensor:
        return torch.full((len(tokens),), gone.is_set())

    return stop


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--limit", type=int, default=16)
    chosen = parser.parse_args()
    uvicorn.run(create_app(chosen.folder, chosen.limit), port=chosen.port, log_level="warning")
