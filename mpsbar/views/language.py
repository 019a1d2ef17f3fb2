"""The one `_()` that all words pass, so that languages can come: chosen once.

The gettext of the module looks for its files anew at each call, four of them, 60 µs a word.
"""

import gettext

_ = gettext.translation("mpsbar", fallback=True).gettext
