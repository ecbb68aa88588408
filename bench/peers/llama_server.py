"""llama.cpp's own server from the wheel `xllamacpp`, which needs no compiler, until Ctrl-C; prints its address.

    python -m venv /some/folder && /some/folder/bin/pip install xllamacpp      # in an environment of its own
    /some/folder/bin/python bench/peers/llama_server.py FILE.gguf --threads 2 --slots 16
    python -m bench.compare --peer llama.cpp=http://127.0.0.1:8090/v1

Knows nothing of the rest of this project, which that environment does not hold.
"""

import argparse
import threading
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--threads", type=int, required=True, help="as many as Qdesk takes: one a physical core")
    parser.add_argument("--slots", type=int, default=16, help="answers at once")
    parser.add_argument("--context", type=int, default=2048, help="tokens of one answer and its prompt")
    parser.add_argument("--port", type=int, default=8090)
    chosen = parser.parse_args()
    server = start(chosen)
    print(f"{server.listening_address}/v1", flush=True)
    threading.Event().wait()


def start(chosen: argparse.Namespace) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = chosen.file
    params.n_parallel, params.n_ctx = chosen.slots, chosen.slots * chosen.context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = chosen.threads
    params.port = chosen.port
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
