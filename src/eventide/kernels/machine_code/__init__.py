"""Machine code of kernels: found on disk, shipped with a wheel, or compiled.

cache.py       one file for each kernel, signature and CPU; what numba asks before it compiles
sources.py     the sources that the code of a kernel is made from
shipped.py     the folders with code that a wheel brings, for this CPU
signatures.py  the types of a kernel's arguments as text; signatures.txt, those that queries need
warming.py     many kernels compiled at once, in several processes
notice.py      a line on the terminal while something is compiled

None of it changes what a kernel does: a file that is missing, damaged or made from other sources
means that the kernel is compiled.
"""
