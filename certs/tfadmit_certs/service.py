"""The controller as a process: Lease, watches, metrics and signals around the loop.

Here: putting the parts together, starting and ending them. Not here: arguments (`cli`), logging's
form (who starts this decides). I/O: threads, signals, a port; the rest by its parts.
"""

import logging
import signal
import socket
import threading
from dataclasses import dataclass

from tfadmit_certs import controller, fault, issue, kube, lease, metrics, plan, san, secret, steps
from tfadmit_certs.lifetimes import Lifetimes
from tfadmit_certs.names import Names
from tfadmit_certs.watch import Watch

_LOG = logging.getLogger("tfadmit.certs")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_STOP_SECONDS = 5.0


class ListenError(fault.CertsError):
    """The port cannot be listened on."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a run of the controller is told."""

    names: Names
    lifetimes: Lifetimes
    hostnames: san.Names
    """The names that a leaf stands for."""

    identity: str = ""
    """The holder of the Lease; the name of the host, and so of the pod, when empty."""

    host: str = "0.0.0.0"  # noqa: S104 - a pod's
    port: int | None = 8080


def run(api: kube.Api, *, options: Options, objects: controller.Objects | None = None) -> None:
    """Run until SIGTERM or SIGINT, then give the Lease away. `objects` stands in for the cluster's.

    Raises:
        ListenError: the port cannot be listened on.
    """
    store = secret.Store(api, names=options.names)
    counted = metrics.Metrics()
    held = lease.LeaseObject(api, namespace=options.names.namespace, name=options.names.lease)
    identity = options.identity or socket.gethostname()
    keeper = lease.Keeper(
        lease.Lease(held, identity=identity),
        changed=lambda leads: _changed(leads, counted, loop, identity=identity),
    )
    wish = plan.Wish(names=options.hostnames, lifetimes=options.lifetimes)
    loop = controller.Controller(
        objects or store,
        workshop=steps.Workshop(wish=wish, entropy=issue.system_entropy()),
        leading=lambda: keeper.leading,
        monitor=counted,
    )
    watches = [
        Watch(api, path=item.path, name=item.name, changed=loop.changed) for item in store.watched()
    ]
    watches.append(Watch(api, path=held.path, name=options.names.lease, changed=keeper.look))
    port = _port(options, counted, loop)
    # Before any thread begins, because threads inherit it: only the main thread hears of these.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    fields = {"identity": identity, "api": api.address, "metrics_port": port and port.port}
    _LOG.info("started", extra={"fields": fields})
    if port:
        port.start()
    for watch in watches:
        watch.start()
    keeper.start()
    try:
        _until_a_signal(loop)
    finally:
        keeper.stop()
        for watch in watches:
            watch.stop()
        _LOG.info("stopped", extra={"fields": {"identity": identity}})


def _changed(
    leads: bool,  # noqa: FBT001 - a callback with one fact
    counted: metrics.Metrics,
    loop: controller.Controller,
    *,
    identity: str,
) -> None:
    counted.leading(leads)
    _LOG.info("leading" if leads else "standing_by", extra={"fields": {"identity": identity}})
    loop.changed()


def _port(
    options: Options, counted: metrics.Metrics, loop: controller.Controller
) -> metrics.Port | None:
    if options.port is None:
        return None
    try:
        return metrics.Port(
            host=options.host,
            port=options.port,
            registry=counted.registry,
            alive=loop.hung,
            ready=loop.trouble,
        )
    except OSError as error:
        raise ListenError(
            f"cannot listen on {options.host}:{options.port}: {error.strerror or error}; "
            "choose another --metrics-port"
        ) from error


def _until_a_signal(loop: controller.Controller) -> None:
    """Run the loop beside this thread, which waits for a signal.

    A handler would run between any two instructions of the main thread, also while that holds the
    lock of the very event that the handler sets.
    """
    thread = threading.Thread(target=loop.run, name="controller", daemon=True)
    thread.start()
    signal.sigwait(_SIGNALS)
    loop.stop()
    # A request that is on its way may end; the process does not wait for more.
    thread.join(_STOP_SECONDS)
