"""Ways to sign in whose packages are not installed: the server says so at its start, and does without otherwise."""

import pytest

from tests.server import run_to_its_end

START = """
import sys
sys.modules["ldap3"] = sys.modules["authlib"] = None  # as if they were not installed
from engine.settings import Settings
from ui.sign_in.opening import open_directory, open_provider
settings = Settings(**{settings})
print(open_directory(settings), open_provider(settings))
"""


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "None None"),
        (
            {"oidc_issuer": "https://id.example", "oidc_client_id": "x"},
            'authlib is not installed: pip install ".[oidc]"',
        ),
        ({"ldap_url": "ldaps://x", "ldap_base": "dc=x"}, 'ldap3 is not installed: pip install ".[ldap]"'),
    ],
)
def test_what_is_missing_is_told(settings: dict[str, str], sentence: str) -> None:
    program = START.replace("{settings}", repr(settings))
    _, said = run_to_its_end(("-c", program))
    assert sentence in said
    assert "Traceback" not in said
