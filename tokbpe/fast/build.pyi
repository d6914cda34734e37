from typing import TypedDict, type_check_only

@type_check_only
class Facts(TypedDict):
    compiler: str  # with its version
    c_standard: int  # 201710 for C17, 0 if unknown
    cython: str
    optimized: bool
    checked: bool  # bounds, initialization and overflow
    sanitizer: str  # "" without one
    without_gil: bool  # what the module declares

def facts() -> Facts: ...
