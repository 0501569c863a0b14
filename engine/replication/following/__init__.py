"""A broker's followers: their fetches from leaders, and the changes of their logs.

Source: PART-8 … PART-11.
"""
