"""A broker's followers: what they fetch from leaders, and what becomes of it (PART-8 … PART-11)."""
