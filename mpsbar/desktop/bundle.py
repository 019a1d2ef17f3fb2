"""Is this process an app of its own, or a Python that runs one?"""

from pathlib import PurePath


def read_bundle_identifier() -> str | None:
    """None outside an app; a framework Python lies in an app too, but in Python's own."""
    try:
        from Foundation import NSBundle
    except ImportError:
        return None
    bundle = NSBundle.mainBundle()
    identifier, path = bundle.bundleIdentifier(), PurePath(str(bundle.bundlePath() or ""))
    is_app = path.suffix == ".app" and path.name != "Python.app"
    if not identifier or not is_app or str(identifier).startswith("org.python."):
        return None
    return str(identifier)
