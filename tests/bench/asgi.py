"""The same application behind a2wsgi, for servers that speak ASGI only."""

from a2wsgi import WSGIMiddleware

from bench import hosts, loaded

application = WSGIMiddleware(loaded.application, workers=hosts.THREADS)
