"""In the worker: reports what its allocators hold and frees the cache, without hurting its host.

Standard library only, Python 3.9+, relative imports only: `mpsbar enable` copies this folder as it
stands.
"""

__version__ = "0.1.0"
