"""Framing, Unix sockets, peer credentials and where sockets and state live.

Read `paths.py` for the places, `connection.py` for the wire, and `channel.py` for questions and
answers over it.
"""
