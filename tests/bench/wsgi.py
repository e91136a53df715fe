"""The application as the product builds it, for any server.

`TFADMIT_BENCH_OBJECTS` names the file with the JobSets.
"""

import os
from pathlib import Path

from flask import Flask
from prometheus_client import CollectorRegistry

from tfadmit_webhook import app, json_log, lookup, objects_file
from tfadmit_webhook.observe import Observer
from tfadmit_webhook.settings import Settings


def make() -> Flask:
    """Build the application."""
    json_log.install()
    content = objects_file.load(Path(os.environ["TFADMIT_BENCH_OBJECTS"]).read_text())
    if isinstance(content, str):
        raise SystemExit(content)
    source = objects_file.Objects(content.workloads, runtimes=content.runtimes)
    settings = Settings()
    return app.create_app(
        context_for=lambda remaining: lookup.Context(
            reader=source, settings=settings, remaining=remaining
        ),
        ready=source.failing,
        observer=Observer(CollectorRegistry()),
        server=settings.server,
    )
