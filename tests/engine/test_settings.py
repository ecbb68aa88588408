"""The environment becomes typed settings; what is wrong there is said in one sentence that helps."""

import os
from pathlib import Path

import pytest

from engine.settings import Settings, document, load, unknown
from engine.sign_in_settings import PREFIX, role_map

BAD = [
    ("PORT", "99999", "QDESK_PORT is '99999'; it must be a whole number from 1 to 65535."),
    ("PORT", "", "QDESK_PORT is empty; it must be a whole number from 1 to 65535."),
    ("PORT", "http", "QDESK_PORT is 'http'; it must be a whole number from 1 to 65535."),
    ("HOST", "", "QDESK_HOST is empty; it must be text that is not empty."),
    ("MODEL", "", "QDESK_MODEL is empty; it must be text that is not empty."),
    ("DEVICE", "tpu", "QDESK_DEVICE is 'tpu'; it must be auto, cpu, cuda or cuda:N."),
    ("BACKEND", "foo", "QDESK_BACKEND is 'foo'; it must be qwen2, remote or scripted."),
    ("QUANTIZE", "int8", "QDESK_QUANTIZE is 'int8'; it must be nf4 or none."),
    ("DRAIN_S", "abc", "QDESK_DRAIN_S is 'abc'; it must be a number of 0 or more."),
    ("DRAIN_S", "inf", "QDESK_DRAIN_S is 'inf'; it must be a number of 0 or more."),
    ("REQUEST_TIMEOUT_S", "0", "QDESK_REQUEST_TIMEOUT_S is '0'; it must be a number above 0."),
    ("RETENTION_DAYS", "1.5", "QDESK_RETENTION_DAYS is '1.5'; it must be a whole number from 0 to 36500."),
    (
        "PUBLIC_URL",
        "desk.example",
        "QDESK_PUBLIC_URL is 'desk.example'; it must be empty, or an address such as https://chat.example.org "
        "or https://example.org/chat.",
    ),
]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)


def _refusal(monkeypatch: pytest.MonkeyPatch, **values: str) -> str:
    for name, value in values.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(SystemExit) as exit:
        load()
    return str(exit.value.code)


@pytest.mark.parametrize(("name", "value", "sentence"), BAD)
def test_a_bad_value_is_told_with_name_value_and_range(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    meaning = Settings.model_fields[name.lower()].description
    assert _refusal(monkeypatch, **{name: value}) == f"{sentence} {meaning}"


def test_every_bad_value_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = _refusal(monkeypatch, PORT="0", DEVICE="tpu").splitlines()
    assert [line.split()[0] for line in lines] == ["QDESK_PORT", "QDESK_DEVICE"]


OIDC = {"OIDC_ISSUER": "https://id.example.org", "OIDC_CLIENT_ID": "qdesk"}
LDAP = {"LDAP_URL": "ldaps://directory.example.org", "LDAP_BASE": "dc=example,dc=org"}
UNFIT: list[tuple[dict[str, str], str]] = [
    ({"BACKEND": "remote"}, "QDESK_BACKEND is remote, so QDESK_OPENAI_BASE_URL must be set."),
    ({"OIDC_ISSUER": "https://id.example.org"}, "QDESK_OIDC_ISSUER is set, so QDESK_OIDC_CLIENT_ID must be set."),
    (OIDC | {"OIDC_ISSUER": "http://id.example.org"}, "QDESK_OIDC_ISSUER must begin with https://, since it vouches"),
    (OIDC | {"OIDC_ROLES": "admin: it"}, "QDESK_OIDC_ROLES and QDESK_OIDC_ROLE_CLAIM go together."),
    ({"PASSWORD_SIGN_IN": "false"}, "QDESK_PASSWORD_SIGN_IN is false, so there must be QDESK_OIDC_ISSUER or"),
    ({"LDAP_URL": LDAP["LDAP_URL"]}, "QDESK_LDAP_URL is set, so QDESK_LDAP_BASE or QDESK_LDAP_DN_TEMPLATE must be"),
    (
        LDAP | {"LDAP_URL": "ldap://directory.example.org"},
        "QDESK_LDAP_URL must begin with ldaps://, or QDESK_LDAP_START",
    ),
    (LDAP | {"LDAP_START_TLS": "true"}, "QDESK_LDAP_START_TLS is for an ldap:// address."),
    (
        LDAP | {"LDAP_URL": "directory"},
        "QDESK_LDAP_URL is 'directory'; it must be empty, or an address such as ldaps://",
    ),
    (LDAP | {"LDAP_FILTER": "(uid=x)"}, "QDESK_LDAP_FILTER is '(uid=x)'; it must be a filter with {name} in it."),
    ({"REQUIRE_TOTP": "chief"}, "QDESK_REQUIRE_TOTP is 'chief'; it must be empty, or staff, reviewer and admin with"),
    (LDAP | {"LDAP_ROLES": "chief: x"}, "QDESK_LDAP_ROLES is 'chief: x'; it must be empty, or a role, a colon and a"),
]


@pytest.mark.parametrize(("values", "sentence"), UNFIT)
def test_settings_that_do_not_fit_together_are_told(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], sentence: str
) -> None:
    assert _refusal(monkeypatch, **values).startswith(sentence)


def test_roles_are_read_as_they_are_written() -> None:
    text = " admin : cn=it,ou=groups ; reviewer: audit;"
    assert Settings(ldap_roles=text).ldap_roles == text
    assert role_map(text) == {"cn=it,ou=groups": "admin", "audit": "reviewer"}


def test_the_providers_secret_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("from a file\n")
    assert Settings(oidc_client_secret_file=str(file)).oidc_secret == "from a file"
    with pytest.raises(ValueError, match="QDESK_OIDC_CLIENT_SECRET_FILE cannot be read"):
        _ = Settings(oidc_client_secret_file=str(tmp_path / "none")).oidc_secret


def test_a_password_in_an_address_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = _refusal(monkeypatch, OPENAI_BASE_URL="htp://me:hunter2@host/v1")
    assert "hunter2" not in refusal
    assert "'htp://***@host/v1'" in refusal


def test_secrets_do_not_show_in_a_printed_object() -> None:
    settings = Settings(api_key="hunter2", session_secret="hunter2", admin_password="hunter2")
    assert settings.api_key.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(settings)


def test_a_misspelt_setting_is_pointed_out() -> None:
    assert unknown({"QDESK_PROT": "80", "QDESK_PORT": "80", "qdesk_host": "::1", "PATH": "/bin"}) == [
        "QDESK_PROT is not a setting and does nothing. Did you mean QDESK_PORT?"
    ]
    assert unknown(["QDESK_COLOUR"]) == ["QDESK_COLOUR is not a setting and does nothing. See docs/settings.md."]


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDESK_PORT", "9000")
    monkeypatch.setenv("QDESK_SYSTEM_PROMPT", "")
    settings = load()
    assert (settings.port, settings.system_prompt, settings.model) == (9000, "", "auto")


def test_sqlite_lives_in_the_data_folder_unless_another_database_is_named() -> None:
    assert Settings(database_url="postgresql+psycopg://db/qdesk").sqlalchemy_url == "postgresql+psycopg://db/qdesk"
    assert Settings().sqlalchemy_url.endswith("/data/qdesk.db")


def test_an_answer_is_not_abandoned_before_another_process_can_tell_that_it_is_read() -> None:
    shared = {"backend": "scripted", "database_url": "postgresql+psycopg://db/qdesk"}
    assert Settings(backend="scripted", abandon_after_s=0).abandoned_after_s == 0
    assert Settings.model_validate({**shared, "abandon_after_s": 0}).abandoned_after_s == 3
    assert Settings.model_validate({**shared, "abandon_after_s": 9}).abandoned_after_s == 9


def test_every_setting_has_a_meaning_and_a_line_in_the_page() -> None:
    page = document()
    for name, field in Settings.model_fields.items():
        assert field.description
        assert page.count(f"| `{PREFIX}{name.upper()}` |") == 1
