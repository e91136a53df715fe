"""Which files of a folder are code, by `.gitignore` and `.tfadmitignore`, as git reads them.

Files of both names count in every folder, and those of the repository's folders above count as
well. A rule in a deeper folder beats one above; in one folder `.tfadmitignore` comes last, so it
can take back (`!data/small.csv`) what git ignores.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pathspec

from tfadmit_client import fault

FILES: Final = (".gitignore", ".tfadmitignore")
# What no training reads; `!__pycache__` in a `.tfadmitignore` takes one back.
ALWAYS: Final = (
    ".git", ".hg", ".svn", ".tfadmit", "__pycache__", "*.py[cod]", ".ipynb_checkpoints",
    ".DS_Store",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules that hold in one folder, and below it unless others are added."""

    specs: tuple[tuple[str, pathspec.GitIgnoreSpec], ...]
    """Each with the path of its folder as seen from the top; the strongest comes last."""

    def excludes(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path, as seen from the top, is left out."""
        for base, spec in reversed(self.specs):
            below = path[len(base) :] + ("/" if is_folder else "")
            said = spec.check_file(below).include
            if said is not None:
                return said
        return False

    def within(self, folder: Path, *, base: str) -> "Rules":
        """Add the rules of a folder, whose path from the top is `base` (with a slash, or empty).

        Raises:
            ClientError: a file of rules cannot be read.
        """
        lines = list(_lines(folder))
        if not lines:
            return self
        return Rules(specs=(*self.specs, (base, _spec(lines, folder))))


def of(top: Path) -> tuple[Rules, str]:
    """Give the rules above a folder, and its path as they see it (with a slash, or empty)."""
    root = next((at for at in (top, *top.parents) if (at / ".git").exists()), top)
    builtin = pathspec.GitIgnoreSpec.from_lines(ALWAYS)
    rules = Rules(specs=(("", builtin),))
    if root == top:
        return rules, ""
    above = [root, *reversed([at for at in top.parents if root in at.parents])]
    for folder in above:
        rules = rules.within(folder, base=_base(folder, root))
    return rules, _base(top, root)


def _base(folder: Path, root: Path) -> str:
    return "" if folder == root else f"{folder.relative_to(root).as_posix()}/"


def _lines(folder: Path) -> Iterator[str]:
    for name in FILES:
        path = folder / name
        try:
            yield from path.read_text(encoding="utf-8-sig", errors="surrogateescape").splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise fault.ClientError(
                f"{path}: cannot be read: {error.strerror}; make it readable"
            ) from error


def _spec(lines: list[str], folder: Path) -> pathspec.GitIgnoreSpec:
    try:
        return pathspec.GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise fault.ClientError(f"{folder}: a line of its ignore files: {error}") from error
