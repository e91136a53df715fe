"""What a user asks for, read and judged before anything of the cluster is known. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from tfadmit_client import fault
from tfadmit_client.submit import patch_file, words
from tfadmit_client.submit.options import Options, Placement
from tfadmit_trainer import contract

Value = TypeVar("Value")

# The TrainJob notes it twice in annotations, which have 256 KiB together; half of that is room for
# the other options. Linux takes 128 KiB for one argument.
_MAX_COMMAND: Final = 64 * 1024
NO_CODE: Final = "none"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A training as its user wants it. None and "" stand for what he leaves to the site."""

    command: tuple[str, ...]
    name: str = ""
    workers: int | None = None
    roles: Mapping[contract.Role, int] = field(default_factory=dict)
    """Tasks of chief, ps and evaluator; empty when the runtime decides."""

    cpu: str = ""
    memory: str = ""
    gpu: tuple[str, int] | None = None
    image: str = ""
    data: tuple[words.Input, ...] = ()
    output: str = ""
    env: tuple[words.Variable, ...] = ()
    deadline: int | None = None
    runtime: str = ""
    patch: Mapping[str, Any] = field(default_factory=dict)
    queue: str = ""
    gpu_type: str = ""
    placement: Placement | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the Secrets that variables come from."""
        return tuple(dict.fromkeys(item.secret for item in self.env if item.secret))


def read(options: Options, *, environ: Mapping[str, str]) -> Wish:
    """Read options.

    Raises:
        ClientError: with every mistake, one a line.
    """
    reader = _Reader()
    take = reader.take
    wish = Wish(
        command=take(_command, options.command) or (),
        name=take(words.job_name, options.name, option="--name") or "",
        workers=take(words.count, options.workers, option="--workers", least=1),
        roles=_roles(options, reader),
        cpu=take(words.cpu, options.cpu, option="--cpu") or "",
        memory=take(words.memory, options.memory, option="--memory") or "",
        gpu=take(words.gpu, options.gpu, option="--gpu"),
        image=take(words.image, options.image, option="--image") or "",
        data=reader.take_all(words.data, options.data, option="--data"),
        output=take(words.output, options.output, option="--output") or "",
        env=reader.take_all(words.variable, options.env, option="--env", environ=environ),
        deadline=take(words.duration, options.deadline, option="--deadline"),
        runtime=take(words.object_name, options.runtime, option="--runtime") or "",
        patch=take(patch_file.judge, options.patch) or {},
        queue=take(words.object_name, options.queue, option="--queue") or "",
        gpu_type=options.gpu_type or "",
        placement=options.placement,
    )
    if options.gpu_type is not None:
        take(words.gpu_types, options.gpu_type, option="--gpu-type", label=words.NVIDIA_TYPE)
    reader.mistakes += [
        *_doubles([item.name for item in wish.env], option="--env", what="variable"),
        *_doubles([item.name for item in wish.data], option="--data", what="input"),
    ]
    if reader.mistakes:
        raise fault.ClientError("\n".join(reader.mistakes))
    return wish


class _Reader:
    """Collects the mistakes of many options."""

    def __init__(self) -> None:
        self.mistakes: list[str] = []

    def take(
        self, read_one: Callable[..., Value], stated: object, **context: object
    ) -> Value | None:
        """Read one option, if it was said."""
        if stated is None:
            return None
        try:
            return read_one(stated, **context)
        except fault.ClientError as error:
            self.mistakes.append(str(error))
            return None

    def take_all(
        self, read_one: Callable[..., Value], stated: tuple[str, ...], **context: object
    ) -> tuple[Value, ...]:
        """Read an option that may be repeated."""
        found = [self.take(read_one, text, **context) for text in stated]
        return tuple(item for item in found if item is not None)


def _command(words_: tuple[str, ...]) -> tuple[str, ...]:
    if not words_ or not words_[0]:
        raise fault.ClientError(
            "no program: write it after two hyphens, as in tfadmit run -- python train.py"
        )
    try:
        length = len(" ".join(words_).encode())
    except UnicodeEncodeError as error:
        raise fault.ClientError(
            f"the argument {error.object[error.start : error.end]!r} is not UTF-8, and Kubernetes "
            "takes nothing else: put it into a file of the code"
        ) from error
    if length > _MAX_COMMAND:
        raise fault.ClientError(
            f"the program and its arguments have {length:,} bytes, and a job carries "
            f"{_MAX_COMMAND:,}: put them into a file of the code"
        )
    return words_


def _roles(options: Options, reader: _Reader) -> dict[contract.Role, int]:
    """Give the number of each role as soon as one is named: what is not named is not there.

    Parameter servers bring the chief along, who runs the program for them.
    """
    servers = reader.take(words.count, options.ps, option="--ps", least=0)
    if servers is None and options.chief is None and options.evaluator is None:
        return {}
    chief = bool(servers) if options.chief is None else options.chief
    return {
        "chief": int(chief),
        "ps": servers or 0,
        "evaluator": int(bool(options.evaluator)),
    }


def _doubles(names: list[str], *, option: str, what: str) -> list[str]:
    twice = {name for name in names if names.count(name) > 1}
    return [f"{option}: there are two of the {what} {name!r}; leave one out" for name in twice]
