"""Bytes on disk: every change of a file, one writer at a time, frames, and mapped files.

disk.py       every change of the store's files, one call for each kind
lock.py       one writer at a time
frame.py      the frames that a segment file consists of
mapped.py     files mapped into memory, and the index nodes read lately
json_text.py  JSON in our files
"""
