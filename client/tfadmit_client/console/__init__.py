"""What passes between a command and the person or program that started it.

`terminal` tells beside the output, `plain` takes from text of others what a terminal would obey,
`interrupts` hears the signals that end a command. Not here: what is told, and how a table looks;
that is with what it tells of.
"""
