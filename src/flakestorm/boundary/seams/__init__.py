"""Where in-process calls are caught: one module per HTTP library, and one for the threads an agent starts.

The library modules are imported only once their library has been, so flakestorm never imports a client the agent does
not use. `flakestorm.boundary.inprocess` puts them in and takes them out.
"""
