"""What every test may ask for."""

pytest_plugins = ["tests.stand_ins.fixtures"]
