"""Real look-ups: the loopback's own names, and names that cannot exist."""

import socket

import pytest

from tfadmit_trainer import resolve


def test_a_name_gives_its_addresses():
    assert "127.0.0.1" in resolve.lookup("localhost").addresses


def test_an_address_is_its_own_answer():
    assert resolve.lookup("127.0.0.7").addresses == ("127.0.0.7",)


def test_a_name_that_cannot_exist_is_unknown_or_has_no_server_to_ask():
    answer = resolve.lookup("worker-0.invalid")
    assert answer.addresses == ()
    assert answer.fault in ("unknown", "unanswered")


@pytest.mark.parametrize("host", ["x" * 64 + ".job", "", "a..b"])
def test_what_is_no_name_is_unknown_and_no_crash(host):
    assert resolve.lookup(host).fault in ("unknown", "unanswered")


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (socket.EAI_NONAME, "unknown"),
        (socket.EAI_AGAIN, "unanswered"),
        (socket.EAI_FAIL, "unanswered"),
    ],
)
def test_no_such_name_and_no_answer_are_told_apart(monkeypatch, number, fault):
    def fail(*_args, **_kwargs):
        raise socket.gaierror(number, "as told")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert resolve.lookup("a.b").fault == fault


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("a.job.team.svc.cluster.local", "a.job.team.svc.cluster.local."),
        ("a.job.team.svc.cluster.local.", "a.job.team.svc.cluster.local."),
        ("aliased.job.team.svc.cluster.local", "aliased.job.team.svc.cluster.local"),
        ("a.job", "a.job"),
        ("localhost", "localhost"),
    ],
)
def test_a_full_name_is_asked_as_it_stands_and_a_short_one_by_the_search_domains(host, asked):
    assert resolve.absolute(host, stated={"aliased.job.team.svc.cluster.local"}) == asked


def test_the_own_line_of_the_hosts_file_proves_nothing():
    text = (
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "10.1.2.3\tw-0.job.team.svc.cluster.local\tw-0\n"
        "10.9.9.9 store.svc.example  # by hostAliases\n\n"
    )
    assert resolve.stated_names(text, own="w-0") == {"localhost", "store.svc.example"}


def test_a_port_that_somebody_listens_on_connects_and_another_does_not():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        assert not resolve.connects("127.0.0.1", port=port, timeout=1)
        listener.listen()
        assert resolve.connects("127.0.0.1", port=port, timeout=1)
