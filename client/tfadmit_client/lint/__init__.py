"""Objects in files, judged by the webhook's rules.

`linting` judges them, `output` writes the findings for people and machines. Not here: the rules,
which are the webhook's, and the objects of a cluster (`audit`).
"""
