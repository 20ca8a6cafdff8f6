"""Settings for every test."""

from hypothesis import settings

# No deadline: a slow machine is not a failure, and speed is measured in bench/.
settings.register_profile("house", deadline=None)
settings.load_profile("house")
