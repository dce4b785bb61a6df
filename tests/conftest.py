"""Every test runs under gevent's patches, made before anything else: Locust makes them when it is imported.

pytest's own plugins have imported `ssl` by then (anyio's among them, which no test uses), so gevent's warning
about that says nothing here; in a run, `locust` patches first.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import locust  # noqa: F401
