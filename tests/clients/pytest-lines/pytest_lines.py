"""A pytest plugin that writes the results to the file of $PYTEST_LINES while the tests run.

First come the names of all tests, as "name NAME". Then comes one line for each test that ended:
"pass NAME", "fail NAME" or "skip NAME". So the script `run` knows the tests that never ended.
"""

import os

results = {}


def write(word, name):
    with open(os.environ["PYTEST_LINES"], "a") as file:
        print(word, name, file=file)


def pytest_collection_finish(session):
    for item in session.items:
        write("name", item.nodeid)


def pytest_runtest_logreport(report):
    # A test has three phases. It fails if one of them fails.
    if report.when == "setup":
        results[report.nodeid] = "pass"
    if report.failed:
        results[report.nodeid] = "fail"
    elif report.skipped and results[report.nodeid] == "pass":
        # An expected failure counts as skipped, too.
        results[report.nodeid] = "skip"
    if report.when == "teardown":
        write(results[report.nodeid], report.nodeid)
