"""Worlds that the tests run in."""

import pytest

from world import World, programs_in

SHEETS = []


def pytest_addoption(parser):
    parser.addoption("--programs", required=True, help="folder of the built programs")
    parser.addoption("--jobs", type=int, default=100, help="jobs of each run, 20 at least")


def pytest_terminal_summary(terminalreporter):
    for sheet in SHEETS:
        terminalreporter.write_line("\n" + sheet)


@pytest.fixture(scope="session")
def jobs(request):
    return request.config.getoption("--jobs")


@pytest.fixture(scope="session")
def tell():
    """Keeps a balance sheet for the end."""
    return SHEETS.append


@pytest.fixture(scope="module")
def make_world(request, tmp_path_factory):
    """Makes worlds that end with the module."""
    made = []

    def make(**how):
        programs = programs_in(request.config.getoption("--programs"))
        made.append(World(programs, tmp_path_factory.mktemp("world"), **how))
        return made[-1]

    yield make
    for world in made:
        world.stop()
