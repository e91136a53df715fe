"""Options and fixtures that every layer of the tests shares."""

import os

import hypothesis
import pytest

# Ten thousand generated pods where nobody waits; enough to catch a slip where somebody does.
# No deadline: machines are noisy, and a slow example is not a wrong one.
_CALM = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("default", _CALM, max_examples=300)
hypothesis.settings.register_profile("ci", _CALM, max_examples=10_000)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")


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
