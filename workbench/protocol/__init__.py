"""What goes over the wire and into job directories. Read `messages.py` first.

Wire structs live here and only here. Every format carries `PROTOCOL`.
"""
