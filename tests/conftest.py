"""Options and fixtures that every layer of the tests shares."""

import os
import signal
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

import hypothesis
import pytest

# A shell lets what it starts in the background ignore Ctrl-C, and nohup a hangup; all that tests
# start would ignore them, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Enough to catch a slip where somebody waits, and more where nobody does.
# No deadline: machines are noisy, and a slow example is not a wrong one.
_CALM = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("default", _CALM, max_examples=300)
hypothesis.settings.register_profile("ci", _CALM, max_examples=1_000)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")

# What comes after the tests without a marker, in this order: what builds or installs comes before
# what needs it, and what takes longest last. For each its fixtures that stay for the rest of the
# run, tests without them first; what a cluster without tfadmit does is seen before it is installed.
_LAYERS = {
    "training": (),
    "cluster": ("tfadmit",),
    "built_schemas": (),
    "node": ("tfadmit", "training_image", "nodes"),
}


# After all others: they set markers, and `-m` takes tests out.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_order)


def _order(item: pytest.Item) -> tuple[int, tuple[bool, ...]]:
    fixtures: Collection[str] = getattr(item, "fixturenames", ())
    found = [(rank, name) for rank, name in enumerate(_LAYERS, 1) if item.get_closest_marker(name)]
    rank, layer = max(found, default=(0, ""))
    return rank, tuple(name in fixtures for name in _LAYERS.get(layer, ()))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="write the golden files anew from what the code gives (then read the diff)",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the time of each layer, which is a folder here; its fixtures are counted with it."""
    layers: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                layers[_layer(report.nodeid)] += report.duration
    if len(layers) > 1:
        terminalreporter.section("time of each layer")
        for layer, seconds in layers.items():
            terminalreporter.write_line(f"{layer:12} {seconds:7.1f} s")


def _layer(nodeid: str) -> str:
    parts = Path(nodeid.partition("::")[0]).parts
    return next((part for part in parts[:-1] if part != "tests"), "tests")
