"""The C functions of macOS with their exact types; `load` looks them up."""

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_int, c_long, c_size_t, c_ubyte, c_uint32, c_uint64, c_ulong
from ctypes import c_void_p as ref  # CFTypeRef and plain buffers: pointers must stay whole
from dataclasses import dataclass
from typing import Any

handle = c_uint32  # io_object_t: the name of a Mach port

# What a function returns, then what it takes.
Prototypes = Mapping[str, tuple[Any, ...]]

SYSTEM: Prototypes = {
    "proc_listpids": (c_int, c_uint32, c_uint32, ref, c_int),
    "proc_pidinfo": (c_int, c_int, c_int, c_uint64, ref, c_int),
    "proc_pid_rusage": (c_int, c_int, c_int, ref),
    "sysctlbyname": (c_int, c_char_p, ref, POINTER(c_size_t), ref, c_size_t),
}
IOKIT: Prototypes = {
    "IOServiceMatching": (ref, c_char_p),
    "IOServiceGetMatchingServices": (c_int, handle, ref, POINTER(handle)),
    "IOIteratorNext": (handle, handle),
    "IOObjectRelease": (c_int, handle),
    "IOObjectGetClass": (c_int, handle, ref),
    "IORegistryEntryCreateCFProperty": (ref, handle, ref, ref, c_uint32),
    "IORegistryEntryGetChildIterator": (c_int, handle, c_char_p, POINTER(handle)),
    "IORegistryEntryGetRegistryEntryID": (c_int, handle, POINTER(c_uint64)),
}
CORE_FOUNDATION: Prototypes = {
    "CFRelease": (None, ref),
    "CFGetTypeID": (c_ulong, ref),
    "CFArrayGetTypeID": (c_ulong,),
    "CFBooleanGetTypeID": (c_ulong,),
    "CFDataGetTypeID": (c_ulong,),
    "CFDictionaryGetTypeID": (c_ulong,),
    "CFNumberGetTypeID": (c_ulong,),
    "CFStringGetTypeID": (c_ulong,),
    "CFArrayGetCount": (c_long, ref),
    "CFArrayGetValueAtIndex": (ref, ref, c_long),
    "CFBooleanGetValue": (c_ubyte, ref),
    "CFDataGetBytePtr": (ref, ref),
    "CFDataGetLength": (c_long, ref),
    "CFDictionaryGetCount": (c_long, ref),
    "CFDictionaryGetKeysAndValues": (None, ref, ref, ref),
    "CFNumberGetValue": (c_ubyte, ref, c_long, ref),
    "CFNumberIsFloatType": (c_ubyte, ref),
    "CFStringCreateWithCString": (ref, ref, c_char_p, c_uint32),
    "CFStringGetCString": (c_ubyte, ref, ref, c_long, c_uint32),
    "CFStringGetLength": (c_long, ref),
}


@dataclass(frozen=True, slots=True)
class Libraries:
    """Paths of the libraries. The frameworks are no files on disk, but dlopen knows their paths."""

    system: str = "/usr/lib/libSystem.B.dylib"
    iokit: str = "/System/Library/Frameworks/IOKit.framework/IOKit"
    core_foundation: str = "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation"
    ioreg: str = "/usr/sbin/ioreg"


def load(path: str, prototypes: Prototypes) -> ctypes.CDLL:
    """Raises OSError, also where a function is missing. Calls release Python's lock."""
    library = ctypes.CDLL(path, use_errno=True)
    for name, (result, *arguments) in prototypes.items():
        try:
            function = library[name]
        except AttributeError:
            raise OSError(f"{path} has no {name}") from None
        function.restype = result
        function.argtypes = arguments
        setattr(library, name, function)
    return library


def system_error(subject: object) -> OSError:
    """The last call's errno as an exception; ESRCH makes it a ProcessLookupError, and so on."""
    code = ctypes.get_errno()
    return OSError(code, f"{subject}: errno {code}")
