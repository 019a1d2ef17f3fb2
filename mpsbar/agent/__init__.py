"""In the worker: tells what its allocators hold and gives the cache back, without hurting its host.

Standard library only, Python 3.9+, relative imports only: `mpsbar enable` copies this folder as it
stands.
"""

__version__ = "0.1.0"
