"""JobSets and Jobs from the API server: the only code that talks to it.

`connection` makes a client, `api` asks and names what went wrong, `cache` remembers, `watch` keeps
the cache fresh, `flight` joins equal questions, `reader` is the `facts.ClusterReader` made of them.
Objects arrive as plain dictionaries and leave as `facts.Workload`; no model classes, so that
unknown fields and new API versions cost nothing.
"""
