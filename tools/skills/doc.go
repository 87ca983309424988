// Package skills finds the skills that an agent may ask for: folders with a SKILL.md, in the public format (agentskills.io/specification).
//
// # Where
//
// In the files that are worked on, then in the folders of the user whose machine does the work, the first of a name wins:
//
//	.muster/skills  .agents/skills  .claude/skills                       foreign: whoever wrote the files wrote them
//	$XDG_CONFIG_HOME/muster/skills  ~/.muster/skills  ~/.agents/skills  ~/.claude/skills   the user's own
//
// A skill may lie up to four folders deep; a folder with a SKILL.md is one skill, and what is below it are its files. Of the files that are worked on,
// everything is opened by workspace.Tree, which nothing leads out of. In the folders of the user links to skills are followed, since that is how
// they are installed, and within a skill only those that stay in it.
//
// # Lenient
//
// A head that does not follow the format is loaded all the same where that can be done, with a Problem: a name that is missing, too long, has other
// letters, or is not that of its folder; a description that is too long; a value with a colon that ought to stand in quotes. Only what has no description, or
// no YAML that can be read, is skipped. One bad file is never in the way of another, and none is an error: orchestrator doctor lists the Problems.
//
// # Bounds
//
// Of each of the six folders at most 2,000 are looked into, of each file the first 64 KiB are read for its head, and no SKILL.md may be over 1 MiB. At most 500
// skills are found. What is over a bound is a Problem.
package skills
