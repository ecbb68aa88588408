"""The schema that migrations make is the one that the models describe, from an empty database and from every older."""

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from storage import Store
from storage.migrate import alembic_config, migrate
from storage.models import Base
from storage.schema import is_newest, newest
from tests.storage.making import an_exchange


def differences(url: str) -> list[object]:
    """What Alembic would change to bring the database to the models."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:

        def is_ours(_: object, name: str | None, kind: str, *__: object) -> bool:
            return not (kind in ("table", "index") and str(name).startswith("exchanges_search"))

        context = MigrationContext.configure(connection, opts={"include_object": is_ours, "compare_type": True})
        return list(compare_metadata(context, Base.metadata))


def constraints(connection: sa.Connection) -> dict[str, object]:
    """Names of keys and constraints by table, which Alembic compares in part only."""
    inspector = sa.inspect(connection)
    return {
        table: (
            inspector.get_pk_constraint(table)["name"],
            sorted(str(each["name"]) for each in inspector.get_unique_constraints(table)),
            sorted(str(each["name"]) for each in inspector.get_foreign_keys(table)),
            sorted(str(each["name"]) for each in inspector.get_indexes(table)),
        )
        for table in Base.metadata.tables
    }


def test_an_empty_database_becomes_what_the_models_describe(empty: str, tmp_path: object) -> None:
    migrate(sa.make_url(empty))
    assert differences(empty) == []
    modelled = sa.create_engine(f"sqlite:///{tmp_path}/models.db", poolclass=sa.NullPool)
    Base.metadata.create_all(modelled)
    migrated = sa.create_engine(empty, poolclass=sa.NullPool)
    with modelled.connect() as by_models, migrated.connect() as by_migrations:
        if by_migrations.dialect.name == by_models.dialect.name:
            assert constraints(by_models) == constraints(by_migrations)


def test_the_newest_schema_is_known_without_alembic(empty: str) -> None:
    assert newest() == ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert not is_newest(sa.make_url(empty))
    migrate(sa.make_url(empty))
    assert is_newest(sa.make_url(empty))


async def test_the_first_schema_with_rows_becomes_the_newest_and_keeps_them(empty: str) -> None:
    """Rows as the first version wrote them, by hand, whatever the models have become."""
    migrate(sa.make_url(empty), "0001")
    engine = sa.create_engine(empty, poolclass=sa.NullPool)
    with engine.begin() as connection:
        for statement in FIRST_ROWS:
            connection.exec_driver_sql(statement)
    store = Store(empty)
    store.open()
    assert differences(empty) == []
    ada = await store.users.by_name("ADA")
    assert ada is not None
    (plan,) = (await store.conversations.list(ada.id)).items
    (exchange,) = await store.conversations.exchanges(plan.id, ada.id)
    assert (exchange.prompt, exchange.answer, exchange.sampling.stop) == ("天气好吗", "很好", ("。",))
    assert [hit.conversation for hit in await store.conversations.search(ada.id, "很好")] == [plan]
    session = await store.sessions.find("seal of a session")
    found = await store.api_keys.find("seal of a key")
    assert session is not None
    assert found is not None
    assert (session.user, session.agent, found[0].name, found[1]) == (ada, "Firefox", "notebook", ada)
    assert [(entry.action, entry.target) for entry in (await store.audit.list()).items] == [("review.open", "e1")]
    assert await store.options.get("limits") == '{"concurrent": 3}'
    with engine.connect() as connection:
        kept = {table: connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() for table in FIRST}
    assert kept == dict.fromkeys(FIRST, 1)
    store.close()


def test_migrating_twice_changes_nothing(empty: str) -> None:
    migrate(sa.make_url(empty))
    migrate(sa.make_url(empty))
    assert differences(empty) == []


def test_there_is_one_newest_version_and_the_command_line_of_alembic_works_too(empty: str) -> None:
    scripts = ScriptDirectory.from_config(alembic_config())
    assert len(scripts.get_heads()) == 1
    migrate(sa.make_url(empty))
    config = alembic_config()
    engine = sa.create_engine(empty, poolclass=sa.NullPool)
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.check(config)  # raises when a model has no migration


async def test_a_migrated_database_takes_rows(empty: str) -> None:
    migrate(sa.make_url(empty))
    store = Store(empty)
    store.open()
    exchange = an_exchange()
    await store.exchanges.record(exchange)
    assert await store.exchanges.get(exchange.id) == exchange
    store.close()


FIRST = ("users", "sessions", "api_keys", "conversations", "exchanges", "audit", "options")  # its tables
FIRST_ROWS = (
    "INSERT INTO users VALUES ('u1', 'Ada', 'ada', 'hash', 'staff', false, '', '', '2026-01-01 00:00:00.000000', NULL)",
    "INSERT INTO conversations VALUES ('c1', 'u1', 'plan', NULL, NULL, 'e1', '2026-01-01 00:00:00.000000',"
    " '2026-01-01 00:00:00.000000', NULL)",
    "INSERT INTO exchanges VALUES (1, 'e1', 'u1', 'page', 'c1', NULL, '天气好吗',"
    """ '[{"role": "user", "content": "天气好吗"}]', '很好', 'done', 'stop', NULL, 'Qwen2', 'nf4',"""
    """ '{"temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05, "seed": null, "stop": ["。"],"""
    """ "max_tokens": null, "ignore_eos": false}',"""
    " 5, 0, 2, 0, '2026-01-01 00:00:00.000000', '2026-01-01 00:00:01.000000', '2026-01-01 00:00:02.000000',"
    " '2026-01-01 00:00:03.000000')",
    "INSERT INTO sessions VALUES ('s1', 'u1', 'seal of a session', 'Firefox', '2026-01-01 00:00:00.000000',"
    " '2026-01-01 00:00:00.000000', '2126-01-01 00:00:00.000000')",
    "INSERT INTO api_keys VALUES ('k1', 'u1', 'notebook', 'seal of a key', 'sk-qdesk-abcd',"
    " '2026-01-01 00:00:00.000000', NULL)",
    "INSERT INTO audit VALUES (1, '2026-01-01 00:00:00.000000', 'u1', 'review.open', 'e1', '')",
    """INSERT INTO options VALUES ('limits', '{"concurrent": 3}')""",
)
