"""What a job has saved in an object store, found and brought to this machine.

`saved_place` finds the store, `saved` lists and reads what is there, `bring` brings it, `pulling`
is these steps for `tfadmit pull` and for programs. Not here: the protocol below an address, which
is the transfer component's.
"""
