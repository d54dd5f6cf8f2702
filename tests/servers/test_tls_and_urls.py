"""TLS connections, Unix sockets, URLs and passwords."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from redis import exceptions
from redis.credentials import CredentialProvider

from aioqless import Client, Job, Settings, Worker, job, redis_url
from aioqless.client import url as address
from aioqless.redis import read_topology
from aioqless.redis.address import Address, redact_url
from tests.conftest import Until
from tests.programs import needs
from tests.servers.certificates import Authority
from tests.servers.processes import Cluster, SentinelSetup, Server

ODD = "p@ss/w:rd #é%?&[]+ '\"\\"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def tls_options(authority: Authority, *more: str, host: str = "localhost") -> tuple[str, ...]:
    """Return the options of a server that accepts only encrypted connections."""
    certificate, key = authority.issue(f"server of {host}", host=host)
    files = (
        "--tls-ca-cert-file",
        str(authority.ca),
        "--tls-cert-file",
        str(certificate),
        "--tls-key-file",
        str(key),
    )
    return (*files, *more)


@pytest.fixture(scope="module")
def tls(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory, redis_server_program: str
) -> Iterator[Server]:
    """Start a server that requires client certificates: that of the wheel has no TLS."""
    server = Server(
        tmp_path_factory.mktemp("tls"),
        *tls_options(authority, "--tls-auth-clients", "yes"),
        tls=authority.ca,
    )
    certificate, key = authority.issue("prober")
    server.start(lambda: server.ask("PING", ssl_certfile=str(certificate), ssl_keyfile=str(key)))
    yield server
    server.kill()


def url_of(tls: Server, authority: Authority, host: str = "localhost", **options: object) -> str:
    certificate, key = authority.issue("client")
    said = {"ssl_ca_certs": authority.ca, "ssl_certfile": certificate, "ssl_keyfile": key} | options
    return f"rediss://{host}:{tls.port}?" + "&".join(
        f"{name}={quote(str(value))}" for name, value in said.items() if value is not None
    )


async def check_jobs_run(client: Client, until: Until) -> None:
    """Check that jobs are put and run, with pub/sub, over any kind of connection."""
    ran: list[str] = []

    @job(klass="Greet")
    async def greet(job: Job[Any]) -> None:
        ran.append(job.jid)

    async with Worker(client, greet, settings=Settings(queues=("mail",), poll=90)) as worker:
        await until(lambda: worker.idle)
        jid = await client.queue("mail").put("Greet")
        await until(lambda: ran)
    assert ran == [jid]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_worker_runs_over_tls_with_a_client_certificate(
    tls: Server, authority: Authority, until: Until, host: str
) -> None:
    async with Client(url_of(tls, authority, host)) as client:
        await check_jobs_run(client, until)


async def test_private_key_may_have_a_password(tls: Server, authority: Authority) -> None:
    certificate, key = authority.issue("locked", password=b"p w")
    url = url_of(tls, authority, ssl_certfile=certificate, ssl_keyfile=key, ssl_password="p w")
    async with Client(url) as client:
        assert await client.queue("mail").put("Greet")
        assert "p%20w" not in str(client.endpoint)


async def test_server_with_an_unknown_ca_is_refused(
    tls: Server, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "other authority")
    async with Client(url_of(tls, authority, ssl_ca_certs=other.ca)) as client:
        with pytest.raises(exceptions.ConnectionError, match="certificate verify failed"):
            await client.queue("mail").length()
    unchecked = url_of(tls, authority, ssl_ca_certs=None, ssl_cert_reqs="none")
    async with Client(unchecked) as client:
        assert await client.queue("mail").put("Greet")


@needs("redis-server")
async def test_server_with_another_host_name_is_refused_unless_disabled(
    authority: Authority, tmp_path: Path
) -> None:
    options = tls_options(authority, "--tls-auth-clients", "no", host="elsewhere.example")
    server = Server(tmp_path, *options, tls=authority.ca)
    server.start(lambda: server.ask("PING", ssl_check_hostname=False))
    try:
        async with Client(url_of(server, authority)) as client:
            with pytest.raises(exceptions.ConnectionError, match="ostname mismatch"):
                await client.queue("mail").length()
        async with Client(url_of(server, authority, ssl_check_hostname="false")) as client:
            assert await client.queue("mail").put("Greet")
    finally:
        server.kill()


async def test_client_without_a_required_certificate_is_refused(
    tls: Server, authority: Authority
) -> None:
    async with Client(url_of(tls, authority, ssl_certfile=None, ssl_keyfile=None)) as client:
        with pytest.raises(exceptions.ConnectionError):
            await client.queue("mail").length()


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (
            "ssl_ca_certs=/nowhere/ca.crt",
            r"can't be used \(ssl_ca_certs /nowhere/ca.crt\): No such file",
        ),
        ("ssl_certfile=/dev/null", r"can't be used \(ssl_certfile /dev/null\)"),
        ("ssl_cert_reqs=maybe", "must be required, optional or none, not 'maybe'"),
        ("ssl_ca_cert=/ca.crt", "has the option 'ssl_ca_cert', which is none of"),
    ],
)
def test_invalid_certificate_files_raise_at_connect(option: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Client(f"rediss://h?{option}")


async def test_plain_connection_to_a_tls_server_raises(tls: Server) -> None:
    async with Client(f"redis://127.0.0.1:{tls.port}") as client:
        with pytest.raises(exceptions.RedisError):
            await client.queue("mail").length()


@needs("redis-server")
async def test_sentinels_work_over_tls(authority: Authority, tmp_path: Path, until: Until) -> None:
    with SentinelSetup(
        tmp_path,
        *tls_options(authority, "--tls-auth-clients", "no", "--tls-replication", "yes"),
        tls=authority.ca,
    ) as watched:
        url = f"{watched.url}?ssl_ca_certs={authority.ca}"
        async with Client(url) as client:
            await check_jobs_run(client, until)
        for sentinel in watched.sentinels:  # sentinels may have their own password
            sentinel.ask("ACL", "SETUSER", "default", "resetpass", f">{ODD}")
        async with Client(f"{url}&sentinel_password={quote(ODD, safe='')}") as client:
            assert await client.queue("mail").put("Greet")
        async with Client(url, patience=0) as client:
            with pytest.raises(
                exceptions.ConnectionError, match=r"can't find Redis by .*Authentication required"
            ):
                await client.queue("mail").length()


@pytest.mark.long
@needs("redis-server")
async def test_cluster_works_over_tls(authority: Authority, tmp_path: Path, until: Until) -> None:
    options = tls_options(
        authority, "--tls-auth-clients", "no", "--tls-replication", "yes", "--tls-cluster", "yes"
    )
    with Cluster(tmp_path, *options, tls=authority.ca) as cluster:
        async with Client(f"{cluster.url}?ssl_ca_certs={authority.ca}", namespace="{a}") as client:
            await check_jobs_run(client, until)


# Sockets and passwords


@pytest.fixture
def server_with_user(tmp_path: Path) -> Iterator[Server]:
    """Start a server with a socket and a user whose name has special characters."""
    server = Server(
        tmp_path / "a server", "--unixsocket", str(tmp_path / "a server" / "redis.sock")
    )
    server.start()
    server.ask("ACL", "SETUSER", "ann:é@x", "reset", "on", f">{ODD}", "~*", "&*", "+@all")
    server.ask("CONFIG", "SET", "requirepass", ODD)
    yield server
    server.kill()


@pytest.mark.parametrize("user", [None, "ann:é@x"])
async def test_password_may_have_any_characters(
    server_with_user: Server, until: Until, user: str | None
) -> None:
    async with Client(
        redis_url("127.0.0.1", server_with_user.port, username=user, password=ODD)
    ) as client:
        await check_jobs_run(client, until)
        assert ODD not in str(client.endpoint) and quote(ODD, safe="") not in str(client.endpoint)


@pytest.mark.parametrize("user", [None, "ann:é@x"])
async def test_unix_socket_works_with_and_without_a_password(
    server_with_user: Server, until: Until, user: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIOQLESS_PASSWORD", ODD)
    if user:
        monkeypatch.setenv("AIOQLESS_USERNAME", user)
    async with Client(f"unix://{quote(str(server_with_user.folder))}/redis.sock?db=3") as client:
        await check_jobs_run(client, until)
        assert (await client.redis.info("keyspace")).keys() == {"db3"}


async def test_missing_unix_socket_raises() -> None:
    async with Client("unix:///nowhere/redis.sock") as client:
        with pytest.raises(
            exceptions.ConnectionError,
            match=r"can't connect to Redis at unix:///nowhere/redis.sock",
        ):
            await client.queue("mail").length()


# URLs


@pytest.mark.parametrize(
    ("url", "kind", "endpoints", "service"),
    [
        ("redis://h", "server", (("h", 6379),), ""),
        ("redis://h:1/2", "server", (("h", 1),), ""),
        ("unix:///a/b.sock", "server", ("/a/b.sock",), ""),
        (
            "redis+sentinel://a,b:1,[::1]:2/my%20master",
            "sentinel",
            (("a", 26379), ("b", 1), ("::1", 2)),
            "my master",
        ),
        ("redis+sentinel://u:p%40@a/m/3?sentinel_password=s", "sentinel", (("a", 26379),), "m"),
        ("rediss+cluster://u:p@a:1,b", "cluster", (("a", 1), ("b", 6379)), ""),
    ],
)
def test_url_has_address_and_credentials(
    url: str, kind: str, endpoints: tuple[object, ...], service: str
) -> None:
    read = Address.parse(url)
    assert (read.kind, read.endpoints, read.service) == (kind, endpoints, service)
    assert (read.tls is not None) == url.startswith("rediss")


def test_credentials_apply_to_each_host_of_a_url() -> None:
    read = Address.parse("redis+sentinel://ann:p%40@a,b/m/3")
    assert (read.login, read.options["db"]) == ({"username": "ann", "password": "p@"}, 3)
    assert Address.parse("redis+cluster://:p@a,b").login == {"password": "p"}


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis+sentinel://a,b", "must name the service behind the hosts"),
        ("redis+cluster://a/1", "a Redis Cluster has no databases: take '1' out of its URL"),
        ("redis+proxy://a", "must begin with redis://"),
        ("unix://", "must name it"),
        ("redis://h/abc", "must end in the number of a database, as in /0, not in /abc"),
        ("redis://h/1/2", "not in /1/2"),
        ("redis+sentinel://a/m/abc", "not in /abc"),
        ("redis://h/1?db=2", "names two databases: /1 and db=2"),
        ("redis://h?db=-1", "db in the URL of Redis must be 0 or more, not -1"),
        ("redis://h?db=1&db=2", "must give the option 'db' one value, not 2"),
        ("redis://h?socket_timeout=", "must give the option 'socket_timeout' one value, not none"),
        (
            "redis://h?socket_connect_timeout=0",
            "socket_connect_timeout in the URL of Redis must be finite and >= 0.001",
        ),
        ("redis://h?protocol=3", r"must be 2 \(RESP2\), not 3"),
        (
            "redis://h?max_connections=5",
            "'max_connections', which does nothing here: a client has one connection for all calls",
        ),
        ("redis://h?timeout=5", "'timeout', which does nothing here: socket_timeout is"),
        ("redis://h?retry_on_timeout=true", "'retry_on_timeout', which does nothing here"),
        ("redis://h?health_check_interval=5", "'health_check_interval', which does nothing here"),
        (
            "redis://h?ssl_ca_certs=ca.crt",
            "'ssl_ca_certs', which does nothing in a URL that begins with redis://",
        ),
        (
            "redis://h?sentinel_password=x",
            "'sentinel_password', which does nothing in a URL that begins with redis://",
        ),
        (
            "unix:///a?socket_keepalive=true",
            "'socket_keepalive', which does nothing in a URL that begins with unix://",
        ),
        ("redis://h?path=/a", "'path', which is none of"),
    ],
)
def test_invalid_url_is_refused(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_topology(url, "{a}")


def test_credential_provider_together_with_a_password_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match="has a username or a password, and there are credentials: give one of them",
    ):
        Client("redis://:secret@h", credentials=CredentialProvider())


def test_url_can_select_the_protocol_version() -> None:
    assert "protocol" not in Address.parse("redis://h?protocol=2").options


def test_url_is_shown_without_passwords() -> None:
    url = "rediss+sentinel://ann:s3cret@a,b/m?sentinel_password=s3cret&ssl_password=s3cret&db=1"
    assert (
        redact_url(url)
        == "rediss+sentinel://ann:***@a,b/m?sentinel_password=***&ssl_password=***&db=1"
    )
    assert "s3cret" not in str(read_topology(url).address) and "s3cret" not in repr(
        read_topology(url).address
    )


def test_password_of_the_environment_applies_to_several_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIOQLESS_PASSWORD", ODD)
    found = address.find_url("redis+sentinel://a:1,b:2/m")
    assert (
        found
        and Address.parse(found).login == {"password": ODD}
        and len(Address.parse(found).endpoints) == 2
    )
