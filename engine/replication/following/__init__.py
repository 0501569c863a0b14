"""The follower side of a broker: fetches from leaders, and the changes of the follower logs.

Source: PART-8 … PART-11.
"""
