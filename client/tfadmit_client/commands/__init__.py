"""The commands of `tfadmit`: one module for each, and the options that several share.

`tfadmit ps` is `ps`, with a function `main(argv, prog=…) -> int`; `cli` has the table of all. A
command reads its arguments, calls the room that does the work, prints, and gives the exit code. It
imports no other command. Options about jobs are in `jobs.option`.
"""
