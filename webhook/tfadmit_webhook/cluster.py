"""From a workload to the addresses of its tasks, and from a pod to the one task that it is.

Pure. Where the facts do not suffice, a `Refusal` says what is missing and how to state it: a
guessed size would hang a training for hours.
"""

import functools

from tfadmit_trainer import contract, encoding, pattern
from tfadmit_webhook import facts, naming, raw, workload
from tfadmit_webhook.decision import Reason, Refusal


@functools.lru_cache(maxsize=1024)
def plan(work: facts.Workload, *, domain: str, default_port: int) -> contract.Cluster | Refusal:
    """Compute the cluster of a workload; cached, since all its pods ask for the same one."""
    if problems := _problems(work):
        return Refusal(
            reason=Reason.CLUSTER_INVALID,
            message=f"{work.kind} {work.namespace}/{work.name}: {'; '.join(problems)}",
        )
    roles: dict[contract.Role, list[str]] = {role: [] for role in contract.ROLES}
    for group in work.groups:
        if group.size:
            hosts = _hosts(work, group)
            roles[group.role].append(
                naming.address(
                    hosts,
                    subdomain=work.subdomain,
                    namespace=work.namespace,
                    domain=domain,
                    port=group.port or default_port,
                    short=group.short_address,
                )
            )
    return contract.Cluster(**{role: tuple(patterns) for role, patterns in roles.items()})


def stale(view: workload.Pod, work: facts.Workload, *, default_port: int) -> bool:
    """Whether a remembered JobSet cannot be the one that this pod was made from.

    A suspended JobSet makes no pods, and it changes only while it is suspended; so a pod that
    arrives while the remembered state is suspended was made from a newer one. So was a pod whose
    role, port or form of address is not that of its remembered template. In a second round the
    pod states the port that the first one gave it, where the template left it to the default.
    """
    uid = view.annotations.get(contract.JOBSET_UID_ANNOTATION)
    if work.suspended or (uid and uid != work.uid) or isinstance(member(view, work), Refusal):
        return True
    group = work.group(view.labels.get(contract.REPLICATED_JOB_LABEL, ""))
    own = workload.task_group(group.name, template=view, replicas=1, job_spec={}) if group else None
    return own is not None and _form(own, default_port) != _form(group, default_port)


def member(view: workload.Pod, work: facts.Workload) -> tuple[contract.Role, int] | Refusal:
    """Find role and index of a pod in its workload.

    index = tasks of earlier groups of the same role + job index * completions + completion index;
    so one job of many pods, many jobs of one pod, and mixtures come out right by one formula.
    """
    name = work.name if work.kind == "Job" else view.labels.get(contract.REPLICATED_JOB_LABEL, "")
    group = work.group(name)
    if group is None:
        return Refusal(
            reason=Reason.NOT_A_MEMBER,
            message=(
                f"the pod carries {contract.FRAMEWORK_LABEL}={contract.FRAMEWORK}, but the pod "
                f"template of {_group_name(work, name)} does not, so it is no task of the "
                "cluster: set the label on the template, or remove it from the pod"
            ),
        )
    completion = view.completion_index
    job_index = 0 if work.kind == "Job" else view.job_index
    if completion is None or job_index is None:
        return _no_index(work, name)
    if completion >= group.completions or job_index >= group.replicas:
        return Refusal(
            reason=Reason.INDEX_BEYOND_CLUSTER,
            message=(
                f"the pod has job index {job_index} and completion index {completion}, but "
                f"{_group_name(work, name)} has only {_size(group)}; the pod is admitted once "
                "there is such a task"
            ),
        )
    before = _tasks_before(work, group)
    return group.role, before + job_index * group.completions + completion


def stated(view: workload.Pod, text: str) -> contract.Task | Refusal:
    """Find the task of a pod whose annotation states the cluster.

    Its host name decides where it is one of the cluster's; else role and completion index do.
    """
    where = f"annotation {contract.CLUSTER_ANNOTATION}"
    try:
        cluster = encoding.decode(text)
    except contract.ContractError as error:
        return Refusal(reason=Reason.CLUSTER_INVALID, message=f"{where}: {error}")
    role, problem = workload.stated_role(view)
    if problem:
        return Refusal(reason=Reason.CLUSTER_INVALID, message=problem)
    if found := _by_host(cluster, host=raw.text(view.spec.get("hostname")), role=role):
        return found
    return _by_index(cluster, view=view, role=role, where=where)


def _by_host(
    cluster: contract.Cluster, *, host: str, role: contract.Role | None
) -> contract.Task | None:
    for candidate in (role,) if role else contract.ROLES:
        index = pattern.find(cluster.patterns(candidate), host) if host else None
        if index is not None:
            return contract.Task(cluster=cluster, role=candidate, index=index)
    return None


def _by_index(
    cluster: contract.Cluster, *, view: workload.Pod, role: contract.Role | None, where: str
) -> contract.Task | Refusal:
    chosen: contract.Role = role or "worker"
    size = cluster.size(chosen)
    index = None if view.job_index else view.completion_index
    if index is None and size == 1 and (role or cluster.total == 1):
        index = 0
    if index is None:
        return Refusal(
            reason=Reason.INDEX_MISSING,
            message=(
                f"{where} lists {cluster.total} tasks, and nothing says which one this pod is: "
                "set spec.hostname to the first word of its address, or label "
                f"{contract.ROLE_LABEL} and annotation {contract.COMPLETION_INDEX_ANNOTATION}"
            ),
        )
    if index >= size:
        return Refusal(
            reason=Reason.INDEX_BEYOND_CLUSTER,
            message=f"{where} has no {chosen} {index}: it lists {size} {chosen} tasks",
        )
    return contract.Task(cluster=cluster, role=chosen, index=index)


def _form(group: facts.TaskGroup | None, default_port: int) -> tuple[object, ...]:
    if group is None:
        return ()
    return group.role, group.port or default_port, group.short_address, group.problems


def _role_size(work: facts.Workload, role: str) -> int:
    return sum(group.size for group in work.groups if group.role == role)


def _hosts(work: facts.Workload, group: facts.TaskGroup) -> str:
    if work.kind == "Job":
        return naming.job_hosts(job=work.name, completions=group.completions)
    return naming.jobset_hosts(
        jobset=work.name,
        replicated_job=group.name,
        replicas=group.replicas,
        completions=group.completions,
    )


def _problems(work: facts.Workload) -> list[str]:
    problems = [problem for group in work.groups for problem in group.problems]
    single = {role: _role_size(work, role) for role in ("chief", "evaluator")}
    problems += [
        f"TensorFlow allows one {role}, there are {count}"
        for role, count in single.items()
        if count > 1
    ]
    if (count := sum(group.size for group in work.groups)) > pattern.MAX_TASKS:
        problems.append(f"{count:,} tasks are more than {pattern.MAX_TASKS:,}")
    if not work.has_names:
        problems.append(
            "spec.network.enableDNSHostnames is false, so its pods have no DNS names: set it to "
            "true, or remove it"
        )
    if not work.subdomain:
        problems.append(
            "the pod template has no subdomain, so its pods have no DNS names: set "
            "spec.template.spec.subdomain to the name of a headless Service that selects them "
            "and has publishNotReadyAddresses: true"
        )
    return problems


def _size(group: facts.TaskGroup) -> str:
    tasks = "1 task" if group.completions == 1 else f"{group.completions} tasks"
    return tasks if group.replicas == 1 else f"{group.replicas} jobs of {tasks}"


def _tasks_before(work: facts.Workload, group: facts.TaskGroup) -> int:
    index = work.groups.index(group)
    return sum(earlier.size for earlier in work.groups[:index] if earlier.role == group.role)


def _no_index(work: facts.Workload, name: str) -> Refusal:
    return Refusal(
        reason=Reason.INDEX_MISSING,
        message=(
            f"the pod of {_group_name(work, name)} has no completion index: set "
            "completionMode: Indexed in the job's spec"
        ),
    )


def _group_name(work: facts.Workload, name: str) -> str:
    owner = f"{work.kind} {work.namespace}/{work.name}"
    return owner if work.kind == "Job" else f"replicated job {name!r} of {owner}"
