"""Text files that go with a question: read from bytes, put into the prompt, and told apart from it again for showing.

In the prompt each file is a fenced block with its name, and the fence is longer than any in the file, so that nothing
in a file can end its block. Knows nothing of pages and keeps nothing.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from engine.errors import InvalidRequest
from ui.i18n import Language

LONGEST_MESSAGE = 250_000  # characters with the files; the socket drops messages over a million bytes without a word
LARGEST_FILE = 500_000  # bytes; as base64 it must stay under the million bytes that the socket lets through
MOST_FILES = 8
LONGEST_NAME = 100

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_ENCODINGS = ("utf-8", "gb18030")  # the second is what Chinese Windows writes, and holds all of GBK
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_HEAD = re.compile(r"(?:\A|\n\n)File: ([^\n]{1,100})\n(`{3,})[\w+#.-]*\n")
_TRIES = 20  # places where the files of a prompt may begin that are tried


@dataclass(frozen=True, slots=True)
class TextFile:
    name: str
    text: str


def read_file(name: object, data: object, say: Language) -> TextFile:
    """A file as the browser sent it, base64 in `data`. Raises InvalidRequest with a sentence for the reader."""
    name = _clean_name(str(name))
    try:
        raw = base64.b64decode(str(data), validate=True)
    except binascii.Error as error:
        raise InvalidRequest(say("{name} could not be read.", name=name)) from error
    if len(raw) > LARGEST_FILE:
        limit = say.number(LARGEST_FILE // 1000)
        raise InvalidRequest(say("{name} is too large: a file may have {limit} kB.", name=name, limit=limit))
    text = _decoded(raw)
    if text is None:
        raise InvalidRequest(say("{name} is no text file that can be read here. Text should be UTF-8.", name=name))
    if len(text) > LONGEST_MESSAGE:
        length, limit = say.number(len(text)), say.number(LONGEST_MESSAGE)
        sentence = say(
            "{name} has {length} characters; a message may have {limit}.", name=name, length=length, limit=limit
        )
        raise InvalidRequest(sentence)
    if not text.strip():
        raise InvalidRequest(say("{name} is empty.", name=name))
    return TextFile(name, text)


def question_of(fields: dict[str, Any]) -> str:
    """The whole question that the composer sent: what was written, and the files that go with it."""
    sent = fields.get("files")
    files = [one for one in sent if isinstance(one, dict)][:MOST_FILES] if isinstance(sent, list) else []
    named = [TextFile(_clean_name(str(one.get("name", ""))), str(one.get("text", ""))) for one in files]
    return with_files(str(fields.get("text", "")), named)


def with_files(text: str, files: Sequence[TextFile]) -> str:
    if not files:
        return text
    asked = [text.rstrip()] if text.strip() else []
    return "\n\n".join([*asked, *map(_block, files)])


def split_files(prompt: str) -> tuple[str, list[TextFile]]:
    """What `with_files` has joined."""
    for head in list(_HEAD.finditer(prompt))[:_TRIES]:
        if files := _files_from(prompt, head.start()):
            return prompt[: head.start()], files
    return prompt, []


def _block(file: TextFile) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", file.text)), default=0))
    suffix = PurePosixPath(file.name).suffix[1:]
    language = suffix if re.fullmatch(r"\w{1,12}", suffix, re.ASCII) and suffix != "txt" else ""
    return f"File: {file.name}\n{fence}{language}\n{file.text.rstrip(chr(10))}\n{fence}"


def _files_from(prompt: str, at: int) -> list[TextFile]:
    """The files from here to the prompt's end; none if something else stands between or behind them."""
    files = []
    while at < len(prompt):
        head = _HEAD.match(prompt, at)
        end = prompt.find("\n" + head[2], head.end()) if head else -1
        if head is None or end < 0:
            return []
        files.append(TextFile(head[1], prompt[head.end() : end]))
        at = end + 1 + len(head[2])
    return files


def _decoded(raw: bytes) -> str | None:
    marked = [encoding for mark, encoding in _MARKS if raw.startswith(mark)]
    for encoding in marked or _ENCODINGS:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        return None if _NOT_TEXT.search(text) else text.replace("\r\n", "\n").replace("\r", "\n")
    return None


def _clean_name(name: str) -> str:
    """The last part of a path, on one line."""
    last = re.split(r"[/\\]", name)[-1]
    return re.sub(r"[\x00-\x1f\x7f`\u2028\u2029]", "", last).strip()[-LONGEST_NAME:] or "file"
