"""Settings for every test."""

import os
import signal

from hypothesis import settings

# No deadline: a slow machine is not a failure, and speed is measured in bench/.
settings.register_profile("house", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)  # a build judges the change, not its luck
settings.load_profile("ci" if os.environ.get("CI") else "house")

# What a shell starts in the background ignores Ctrl-C, and so would all that is started here to be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
