"""What a cluster with tfadmit would make of the objects in files.

`previewing` computes it, `report` holds it, `table` and `dump` show it. Not here: what each
controller makes of an object (`expand`).
"""
