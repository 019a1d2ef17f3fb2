"""The languages chosen in System Settings, for a process whose environment names none.

CoreFoundation itself, because PyObjC takes longer to import than `mpsbar status` may.
"""

import ctypes
from ctypes import c_char_p, c_long, c_ubyte, c_uint32, c_void_p

CORE_FOUNDATION = "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation"
_UTF8 = 0x08000100
_LONGEST = 64  # a name such as zh-Hant-TW
_MAX_LANGUAGES = 50


def read_preferred_languages(library: str = CORE_FOUNDATION) -> list[str]:
    """Returns languages such as "ko-KR", best first, also those of this app; empty: unknown."""
    try:
        foundation = ctypes.CDLL(library)
        copy_languages = foundation.CFLocaleCopyPreferredLanguages
        count = foundation.CFArrayGetCount
        get_item = foundation.CFArrayGetValueAtIndex
        get_text = foundation.CFStringGetCString
        release = foundation.CFRelease
    except (OSError, AttributeError):
        return []
    copy_languages.restype, copy_languages.argtypes = c_void_p, []
    count.restype, count.argtypes = c_long, [c_void_p]
    get_item.restype, get_item.argtypes = c_void_p, [c_void_p, c_long]
    get_text.restype, get_text.argtypes = c_ubyte, [c_void_p, c_char_p, c_long, c_uint32]
    release.restype, release.argtypes = None, [c_void_p]
    array = copy_languages()
    if not array:
        return []
    buffer = ctypes.create_string_buffer(_LONGEST)
    languages = [
        buffer.value.decode(errors="replace")
        for index in range(min(count(array), _MAX_LANGUAGES))
        if get_text(get_item(array, index), buffer, _LONGEST, _UTF8)
    ]
    release(array)
    return languages
