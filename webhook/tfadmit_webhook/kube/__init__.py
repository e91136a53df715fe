"""Objects of the cluster from the API server: the only code that talks to it.

`connection` makes a client, `request` asks over its connections, `asking` names what went wrong,
`api` and `collection` are the questions, `watch` keeps a store fresh. JobSets and Jobs: `cache`
remembers, `flight` joins equal questions, `reader` is the `facts.ClusterReader` made of them. For
the server itself: `secret` follows its certificate, `configurations` reads its webhooks. Objects
are plain dictionaries; no model classes, so that unknown fields and new API versions cost nothing.
"""
