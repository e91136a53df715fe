"""Which commit the code is, and whether it has changed since: asked of git, where there is one.

For people who look back at a job (`tfadmit show`). The archive is the truth and has its own hash,
so everything that goes wrong here means only that nothing is known.
"""

import json
import shutil
import subprocess

_SECONDS = 5.0


def of(folder: str) -> str:
    """Give commit and state as JSON; empty when there is no repository."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return ""
    changed = _git(folder, "status", "--porcelain", "--untracked-files=normal", "--", ".")
    return json.dumps({"commit": commit.strip(), "dirty": bool(changed)})


def _git(folder: str, *arguments: str) -> str:
    program = shutil.which("git")
    if program is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and git's own arguments
            [program, "-C", folder, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
