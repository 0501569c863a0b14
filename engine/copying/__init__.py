"""Topics copied from one cluster to another, going on exactly where a copy has stopped.

`topic_preparation` makes topics, `copy_plan` has the topics, offsets and groups, `copy_journal`
keeps them on disk, `copy_continuation` begins where an earlier copy has ended, `copying_run` reads
and writes, `copy_writers` are the two ways to write, `copied_content` changes records on the way,
and `group_translation` finds where groups stand in the copy.
"""
