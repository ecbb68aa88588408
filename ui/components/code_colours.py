"""The colours of code in answers, which take a bounded time whatever the code is.

Pygments looks for what a language is made of with regular expressions, many of which take a time that grows with the
square of a text that was made for it: 20,000 empty lines of C took 27 s. So what takes longer than BUDGET_S is
left plain from there on. That is asked between two pieces of code, and in rare languages one piece takes seconds by
itself, so only the usual ones have colours. Knows nothing of Markdown.
"""

import time
from collections.abc import Iterator
from functools import lru_cache
from html import escape

from pygments import format as formatted
from pygments.formatters.html import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Text, _TokenType
from pygments.util import ClassNotFound

LARGEST = 20_000  # characters that are coloured
BUDGET_S = 0.25  # of processor time; 20,000 characters of our own Python take 0.08, of JavaScript 0.04

LANGUAGES = frozenset(  # by their first name in Pygments; all their other names work as well
    [
        "ada",
        "awk",
        "bash",
        "batch",
        "c",
        "clojure",
        "cmake",
        "common-lisp",
        "cpp",
        "csharp",
        "css",
        "dart",
        "delphi",
        "diff",
        "docker",
        "elixir",
        "erlang",
        "fortran",
        "fsharp",
        "go",
        "graphql",
        "groovy",
        "haskell",
        "html",
        "http",
        "ini",
        "java",
        "javascript",
        "json",
        "jsx",
        "julia",
        "kotlin",
        "less",
        "lua",
        "make",
        "markdown",
        "matlab",
        "mysql",
        "nasm",
        "nginx",
        "objective-c",
        "ocaml",
        "perl",
        "php",
        "postgresql",
        "powershell",
        "properties",
        "protobuf",
        "pycon",
        "python",
        "splus",
        "rust",
        "scala",
        "scheme",
        "scss",
        "solidity",
        "sql",
        "swift",
        "systemverilog",
        "tcl",
        "tex",
        "toml",
        "tsx",
        "typescript",
        "vb.net",
        "verilog",
        "vhdl",
        "vim",
        "xml",
        "yaml",
    ]
)


def coloured(code: str, language: str) -> str:
    """The code as HTML: in colours where the language is known and the code is not too long."""
    lexer = _lexer(language) if language and len(code) <= LARGEST else None
    return str(formatted(_in_time(lexer, code), _formatter)) if lexer else escape(code)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    try:
        lexer: Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return lexer if lexer.aliases[0] in LANGUAGES else None


def _in_time(lexer: Lexer, code: str) -> Iterator[tuple[_TokenType, str]]:
    """The pieces of the code with what they are; after BUDGET_S the rest of it in one piece."""
    until, told = time.thread_time() + BUDGET_S, 0
    for kind, piece in lexer.get_tokens(code):
        yield kind, piece
        told += len(piece)
        if time.thread_time() > until:
            yield Text, code[told:]
            return


_formatter = HtmlFormatter(nowrap=True)
