"""A TLS handshake in memory, without any network: what a client says to a certificate.

The rules are those of OpenSSL and not our own. Which client and which server is up to the caller.
No I/O.
"""

import ssl

# A handshake takes three turns; more means that both sides wait.
_TURNS = 10


def shake(client: ssl.SSLContext, server: ssl.SSLContext, *, host: str | None) -> ssl.SSLObject:
    """Let the client verify the server, by a name if one is given; give the client's side.

    Raises:
        ssl.SSLError: the client refuses, or the two have no protocol in common.
        ValueError: the name is none.
    """
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(down, up, server_hostname=host)
    answering = server.wrap_bio(up, down, server_side=True)
    for _ in range(_TURNS):
        if _step(asking):  # it has verified the certificate; that is all
            return asking
        _step(answering)
    raise ssl.SSLError("the handshake does not end")


def _step(side: ssl.SSLObject) -> bool:
    """Go on as far as it goes; tells whether it is done."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
