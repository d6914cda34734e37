"""What all tests share: the two engines, the data folder, the hypothesis profiles."""

import importlib
import os
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

# Of NumPy, which is loaded later: the matrices of the tiny model are small, and threads that wait
# for one another take far longer than one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# `pytest --hypothesis-profile=long`, with TOKBPE_EXAMPLES as many examples as one likes.
# No deadline and no complaint of slowness: the sanitized build is slow. A failure prints what
# reproduces it. In CI the examples are the same in each run, so that a change does not fail by
# chance, and there is no database, which would not last; elsewhere they are new each time.
settings.register_profile(
    "default",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    **({"database": None, "derandomize": True} if os.environ.get("CI") else {}),
)
settings.register_profile(
    "long",
    settings.get_profile("default"),
    max_examples=int(os.environ.get("TOKBPE_EXAMPLES", "20000")),
)
settings.load_profile("default")


# After an extra is installed: what was skipped without it.

SKIPPED = "tokbpe/skipped"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skipped-before", action="store_true", help="run only what the last run has skipped"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--skipped-before"):
        return
    skipped = {*config.cache.get(SKIPPED, [])}
    chosen = [item for item in items if skipped & {item.nodeid, item.nodeid.split("::")[0]}]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Modules that were skipped as a whole are among them."""
    skipped = terminalreporter.getreports("skipped")
    if hasattr(config, "cache"):  # there is none with `-p no:cacheprovider`
        config.cache.set(SKIPPED, sorted({report.nodeid for report in skipped}))


@pytest.fixture(params=["reference", "fast"])
def engine(request: pytest.FixtureRequest) -> ModuleType:
    """Each of the two engines in turn."""
    return importlib.import_module(f"tokbpe.{request.param}")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real vocabularies and text that TOKBPE_DATA names."""
    if "TOKBPE_DATA" not in os.environ:
        pytest.skip("TOKBPE_DATA is not set: it names the folder of real vocabularies and text")
    folder = Path(os.environ["TOKBPE_DATA"])
    if not folder.is_dir():
        pytest.fail(f"TOKBPE_DATA names {folder}, which is no folder")
    return folder
