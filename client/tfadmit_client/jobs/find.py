"""One job by its name, or a sentence that helps to find the right one."""

import difflib

from tfadmit_client import fault
from tfadmit_client.cluster import kinds, listing
from tfadmit_client.jobs import option, read
from tfadmit_client.watch import seen


def one(cluster: read.Cluster, *, namespace: str, name: str) -> read.Reading:
    """Read a job.

    Raises:
        ClientError: there is none, or it cannot be read.
        UnreachableError: nobody answers.
    """
    reading = read.one(cluster, namespace=namespace, name=name)
    if not reading.jobs:
        raise absent(cluster, namespace=namespace, name=name)
    return reading


def absent(cluster: read.Cluster, *, namespace: str, name: str) -> fault.ClientError:
    """Say that there is no such job, and which one may be meant."""
    try:
        option.check_namespace(cluster, namespace)
        found = cluster.objects(kinds.TRAINJOB, namespace=namespace)
        names = [seen.key(item)[1] for item in found]
    except listing.UnreachableError:
        raise
    except listing.ReadError:
        names = []
    except fault.ClientError as error:
        return error
    near = difflib.get_close_matches(name, names, n=1)
    listed = f"`tfadmit ps -n {namespace}{cluster.flags}` lists them, -A in all namespaces"
    hint = f"did you mean {near[0]}?" if near else listed
    return fault.ClientError(f"there is no TrainJob {name} in namespace {namespace}; {hint}")
