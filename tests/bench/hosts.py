"""Servers that have no command line for what they are asked to do here.

`python -m bench.hosts NAME PORT CERTIFICATE KEY [ARGUMENT ...]`
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping

# As many as the product has.
THREADS = 32
KEEP_ALIVE_SECONDS = 120


def cheroot(port: int, certificate: str, key: str) -> None:
    """A pool of threads; CherryPy's server."""
    from cheroot.ssl.builtin import BuiltinSSLAdapter  # noqa: PLC0415
    from cheroot.wsgi import Server  # noqa: PLC0415

    from bench import wsgi  # noqa: PLC0415

    server = Server(
        ("127.0.0.1", port), wsgi.make(), numthreads=THREADS, timeout=KEEP_ALIVE_SECONDS
    )
    server.ssl_adapter = BuiltinSSLAdapter(certificate, key)
    server.safe_start()


def gevent(port: int, certificate: str, key: str) -> None:
    """Greenlets in one thread."""
    import gevent as library  # noqa: PLC0415
    from gevent import monkey  # noqa: PLC0415

    monkey.patch_all()
    from gevent.pywsgi import WSGIServer  # noqa: PLC0415

    from bench import wsgi  # noqa: PLC0415

    server = WSGIServer(
        ("127.0.0.1", port), wsgi.make(), log=None, certfile=certificate, keyfile=key
    )
    library.signal_handler(signal.SIGTERM, server.stop)
    server.serve_forever()


def uvloop(port: int, certificate: str, key: str, *objects: str) -> None:
    """The product on another event loop."""
    import uvloop as other  # noqa: PLC0415

    from tfadmit_webhook import cli  # noqa: PLC0415

    other.install()
    options = ["--host", "127.0.0.1", "--port", str(port), "--metrics-port", "0"]
    sys.exit(
        cli.main([*options, "--tls-cert", certificate, "--tls-key", key, "--objects", *objects])
    )


HOSTS: Mapping[str, Callable[..., None]] = {
    "cheroot": cheroot,
    "gevent": gevent,
    "uvloop": uvloop,
}

if __name__ == "__main__":
    HOSTS[sys.argv[1]](int(sys.argv[2]), *sys.argv[3:])
