"""Copies topics from one cluster to another; an interrupted copy is resumed where it stopped.

`topic_preparation` creates topics, `copy_plan` has the topics, offsets and groups, `copy_journal`
keeps them on disk, `copy_continuation` starts where an earlier copy ended, `copying_run` reads and
writes, `copy_writers` are the two ways to write, `copied_content` samples and anonymises records,
and `group_translation` finds the positions of groups in the copy.
"""
