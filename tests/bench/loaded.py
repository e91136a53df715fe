"""The application made at import, for servers that look for it in a module."""

from bench import wsgi

application = wsgi.make()
