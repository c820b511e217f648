"""How each kind of entry changes the state; `core.apply` picks one and is the only caller."""
