"""Framing, Unix sockets, peer credentials and where sockets and state live.

Read `paths.py` for the places and `connection.py` for the wire.
"""
