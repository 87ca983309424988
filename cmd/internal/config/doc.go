// Package config is what this machine allows the commands of jobs, and what it sets for their tools: its configuration file, the flags beside it,
// and what comes of both.
//
// # The file
//
// $XDG_CONFIG_HOME/muster/config.yaml, or the one that --config or MUSTER_CONFIG names; examples/config.yaml shows all of it. It is the host's word: it
// must belong to the user who runs the program, or to root, and nobody else may write to it. Nothing that a task, a plan, a repository or
// the workspace brings is ever read as configuration.
//
// # What counts
//
//	mode      --sandbox, else the file, else required for who works for others (serve, worker) and auto for who works for one person
//	min       --sandbox-min, else the file, else full with required and landlock with auto
//	network   --network, else the file, else none; open must stand in the file too
//	domains   those of the file and of --allow-domain
//	off       --sandbox off, and allow_off in the file: neither alone
//
// A job narrows what comes of it (package policy), and widens nothing.
//
// # Skills
//
// The user's own skills lie in muster/skills below XDG_CONFIG_HOME, in ~/.muster/skills, ~/.agents/skills and ~/.claude/skills (package skills tells how they are read).
//
// # Credentials
//
// Unset takes out of the process's own environment what no command may inherit, once flags and file were read; Values are the secrets that the
// file names, for whoever takes them out of what is shown and stored.
package config
