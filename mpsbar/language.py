"""The language of every text a person reads: `_()` and `ngettext()`.

Not for what programs read: JSON, metrics, the wire, settings and log files are the same everywhere.
"""

import gettext

_translations = gettext.translation("mpsbar", fallback=True)
_ = _translations.gettext
ngettext = _translations.ngettext
