"""Sums, extremes, order statistics and sketches.

sums.py             sums that do not depend on the order of adding
wide_sums.py        sums of squares and products, as four doubles
exact_sums.py       sums of doubles without rounding, from which values can be subtracted
expansions.py       the same for groups and frames, as doubles that add up to exactly the sum
lanes.py            sums and extremes in many lanes at once
extremes.py         which row holds the smallest, largest, first or last value
skyline.py          the minimum of values that expire
sorted_values.py    sorted values in one slab; sorted_blocks.py: any number of them, in blocks
ranked.py           quantiles, distinct and most frequent values of frames
frequent_values.py  which values occur most often
sketches.py         HyperLogLog
frames.py           which rows belong to the frame of a row, or to a hopping window
summaries.py        summaries of runs of rows, for the index; merges.py merges them
texts.py            the smallest or largest text of each run
"""
