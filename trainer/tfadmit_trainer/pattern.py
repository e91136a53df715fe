"""Addresses of many tasks in one short string: `job-node-0-{0..4095}.job:12345`.

Here belongs the grammar of such a pattern and nothing else: no names of the wire, no I/O.
A range is written as in a shell's brace expansion, `{low..high}`, both ends included, without
leading zeros. Several ranges expand like nested loops, the first one outermost.
"""

import functools
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Ten times the largest job that is promised to work; what states more is a typing error or an
# attempt to make a reader allocate without bound.
MAX_TASKS = 100_000
# A DNS name has 253 characters at most; with ranges in place of its numbers it is hardly longer.
# What is longer costs its reader time and memory: patterns come from annotations of 256 KiB.
_MAX_LENGTH = 512

_RANGE = re.compile(r"\{(0|[1-9]\d{0,8})\.\.(0|[1-9]\d{0,8})\}")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


class PatternError(ValueError):
    """A pattern that does not follow the grammar; the text says which and why."""


@dataclass(frozen=True)
class Parsed:
    """A pattern cut at its ranges: `literals` has one element more than `ranges`."""

    literals: tuple[str, ...]
    ranges: tuple[range, ...]
    port: int

    @functools.cached_property
    def size(self) -> int:
        """How many addresses the pattern stands for."""
        return math.prod(len(numbers) for numbers in self.ranges)


def numbers(count: int) -> str:
    """Write the numbers 0 to count - 1: `{0..3}`, or `0` when there is only one."""
    return "0" if count == 1 else f"{{0..{count - 1}}}"


@functools.lru_cache(maxsize=4096)
def parse(pattern: str) -> Parsed:
    """Cut a pattern at its ranges.

    Raises:
        PatternError: the pattern is not `host:port` with ranges.
    """
    if len(pattern) > _MAX_LENGTH:
        raise PatternError(
            f"{pattern[:40]!r}… has {len(pattern):,} characters: a DNS name has 253 at most"
        )
    host, colon, port = pattern.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise PatternError(f"{pattern!r} does not end in a port: write host:port, port 1 to 65535")
    pieces = _RANGE.split(host)
    literals = tuple(pieces[0::3])
    ranges = tuple(
        range(int(low), int(high) + 1) for low, high in zip(pieces[1::3], pieces[2::3], strict=True)
    )
    if not _HOST.fullmatch("0".join(literals)):
        raise PatternError(
            f"{pattern!r} is no host name with ranges: write job-node-0-{{0..3}}.job:{port}"
        )
    if any(len(numbers) == 0 for numbers in ranges):
        raise PatternError(f"{pattern!r} has a range that runs backwards: write {{low..high}}")
    parsed = Parsed(literals=literals, ranges=ranges, port=int(port))
    if parsed.size > MAX_TASKS:
        raise PatternError(f"{pattern!r} stands for more than {MAX_TASKS:,} addresses")
    return parsed


def size(patterns: Sequence[str]) -> int:
    """How many addresses the patterns stand for together."""
    return sum(parse(pattern).size for pattern in patterns)


def expand(patterns: Sequence[str]) -> Iterator[str]:
    """Every address, in the order of task indexes."""
    for pattern in patterns:
        parsed = parse(pattern)
        for chosen in itertools.product(*parsed.ranges):
            yield _join(parsed, chosen)


def at(patterns: Sequence[str], index: int) -> str:
    """Give the address of one task without expanding the others.

    Raises:
        IndexError: the patterns stand for fewer addresses.
    """
    rest = index
    for pattern in patterns:
        parsed = parse(pattern)
        if 0 <= rest < parsed.size:
            return _join(parsed, _digits(parsed, rest))
        rest -= parsed.size
    raise IndexError(f"there is no task {index} among {size(patterns)}")


def port(patterns: Sequence[str], index: int) -> int:
    """Give the port of one task.

    Raises:
        IndexError: the patterns stand for fewer addresses.
    """
    rest = index
    for parsed in map(parse, patterns):
        if 0 <= rest < parsed.size:
            return parsed.port
        rest -= parsed.size
    raise IndexError(f"there is no task {index} among {size(patterns)}")


def find(patterns: Sequence[str], host: str) -> int | None:
    """Give the first task whose address up to its first dot is `host`."""
    before = 0
    for pattern in patterns:
        parsed = parse(pattern)
        position = _position(parsed, host) if _is_separable(parsed) else _searched(pattern, host)
        if position is not None:
            return before + position
        before += parsed.size
    return None


def length(patterns: Sequence[str]) -> int:
    """How many characters all addresses have together, computed without expanding them."""
    return sum(_length(parse(pattern)) for pattern in patterns)


def _is_separable(parsed: Parsed) -> bool:
    """Whether the numbers of an address can be told apart, which digits between them prevent."""
    return not any(literal.isdigit() or not literal for literal in parsed.literals[1:-1])


def _searched(pattern: str, host: str) -> int | None:
    names = (address.partition(":")[0].partition(".")[0] for address in expand([pattern]))
    return next((index for index, name in enumerate(names) if name == host), None)


def _position(parsed: Parsed, host: str) -> int | None:
    """Find a host without expanding the pattern; all of one word cost the same."""
    found = _first_word(parsed).fullmatch(host)
    if found is None:
        return None
    position = 0
    for numbers, digits in itertools.zip_longest(parsed.ranges, found.groups()):
        # What comes after the first dot is alike for all: the first of them counts.
        number = numbers.start if digits is None else int(digits)
        if number not in numbers:
            return None
        position = position * len(numbers) + numbers.index(number)
    return position


@functools.lru_cache(maxsize=512)
def _first_word(parsed: Parsed) -> re.Pattern[str]:
    words = []
    for literal, numbers in itertools.zip_longest(parsed.literals, parsed.ranges):
        word, dot, _ = literal.partition(".")
        words.append(re.escape(word))
        if dot:
            break
        if numbers is not None:
            words.append(r"(0|[1-9][0-9]{0,8})")
    return re.compile("".join(words))


def _join(parsed: Parsed, chosen: Sequence[int]) -> str:
    words = [parsed.literals[0]]
    for number, literal in zip(chosen, parsed.literals[1:], strict=True):
        words += (str(number), literal)
    return f"{''.join(words)}:{parsed.port}"


def _digits(parsed: Parsed, position: int) -> list[int]:
    chosen: list[int] = []
    for numbers in reversed(parsed.ranges):
        position, offset = divmod(position, len(numbers))
        chosen.append(numbers[offset])
    return chosen[::-1]


def _length(parsed: Parsed) -> int:
    fixed = sum(map(len, parsed.literals)) + 1 + len(str(parsed.port))
    total = fixed * parsed.size
    for numbers in parsed.ranges:
        total += _digit_count(numbers) * (parsed.size // len(numbers))
    return total


def _digit_count(numbers: range) -> int:
    total, low = 0, numbers.start
    while low < numbers.stop:
        ceiling = min(numbers.stop, 10 ** len(str(low)))
        total += (ceiling - low) * len(str(low))
        low = ceiling
    return total
