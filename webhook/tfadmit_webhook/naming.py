"""Host names and addresses as JobSet and the Job controller form them, for many tasks at once.

Pure text. The rules stand in JobSet (`{jobset}-{replicatedJob}-{job index}-{completion index}`,
subdomain `network.subdomain` or the JobSet's name) and in Kubernetes (Indexed Jobs set the host
name `{job}-{completion index}`).
"""

from tfadmit_trainer import pattern


def jobset_hosts(*, jobset: str, replicated_job: str, replicas: int, completions: int) -> str:
    """Give the pattern of the host names of one replicated job."""
    return f"{jobset}-{replicated_job}-{pattern.numbers(replicas)}-{pattern.numbers(completions)}"


def job_hosts(*, job: str, completions: int) -> str:
    """Give the pattern of the host names of a plain Indexed Job."""
    return f"{job}-{pattern.numbers(completions)}"


def address(
    host: str, *, subdomain: str, namespace: str, domain: str, port: int, short: bool
) -> str:
    """Write the address of a host (or of a pattern of hosts) behind a headless Service."""
    if short:
        return f"{host}.{subdomain}:{port}"
    return f"{host}.{subdomain}.{namespace}.svc.{domain}:{port}"
