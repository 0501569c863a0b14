"""A broker's followers: their fetches from leaders, and the changes of their logs (PART-8 … 11)."""
