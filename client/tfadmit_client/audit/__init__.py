"""The objects of a live cluster, judged by the webhook's rules.

`auditing` reads them, `judge` judges one, `report` is what comes of it, `output` how that is
written. Not here: the rules, which are the webhook's, and objects in files (`lint`).
"""
