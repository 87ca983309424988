// Package rules decides by its arguments whether a call of a tool is allowed, asked about or denied.
//
// A rule is the name of a tool, or a name with a spec in brackets, in one of three lists:
//
//	allow: run_command(go test *), edit(src/**), web_fetch(domain:*.go.dev)
//	ask:   run_command(git commit *), edit(src/generated/**)
//	deny:  run_command(git * push *), read(**/.env), memory_save, mcp__github__*
//
// # What becomes of a call
//
// Deny wins over ask, ask over allow. What a deny rule matches is an error that names the rule; what an ask rule matches is asked; what an allow rule
// matches is granted, also where the mode asks, and never where the mode refuses. Where a tool has allow rules and none covers a call, the call is asked,
// in every mode. Where no rule speaks of a call, the mode decides ([None]). Several sets (of a host, of a job) each narrow: the strictest verdict counts,
// so an allow of one lifts no ask of another. [Set.Narrowing] is for rules from a source that may forbid and not grant.
//
// A rule without brackets is for every call of its tool; denied so, the tool is not shown ([Set.Hides]). Two words stand for several tools: edit for
// write_file, edit_file and apply_patch; read for those that show files or their names (read_file, grep, glob, list_dir, git_status, git_diff, git_log).
// Only names of MCP tools may hold a *. [Parse] refuses what is wrong with any rule at once, and with it a rule that can never match or
// never decide, with the reason: it would only seem to protect.
//
// # Commands: run_command(words)
//
// The spec is words, read as a shell reads them: quotes keep a word together. A * alone is any number of words, also none; within a word it is any text;
// in quotes it is itself. So `go test *` is for `go test` and `go test ./...`, and not for `go testx`; `git * push *` finds push wherever it stands.
//
// A command line is parsed, and every simple command in it is judged by itself: in lists, pipes, loops, functions, subshells and substitutions,
// wherever those stand (quotes, here-documents, arithmetic, assignments, names of files), in the text of sh -c, eval, trap and of a here-document that a
// shell reads, and behind env, xargs, timeout, nice, nohup, setsid, stdbuf, time, command, exec, busybox and the like. Those that only run another command
// need no rule of their own. Those that do more (find -exec, sudo, doas, ssh, su, chroot, parallel, flock, script) need one beside that of what
// they run. One denied command denies the whole; one that is asked, or that no allow rule covers, makes the whole asked.
//
// An allow rule means the program that the system has by a name: `git status` and `/usr/bin/git status`, not `./git status`. A * inside a word matches no
// ".." that the rule does not have. A deny rule means the name wherever the file stands, and whatever the case of its letters.
//
// What the text does not tell is asked, and never allowed by words: a name or a script that an expansion makes, options that are not understood, what a
// shell reads from a pipe, text that bash would evaluate once more (arithmetic over variables that hold text, ${!x}, ${x@P}, [[ $x -eq 1 ]],
// printf -v), aliases, a text that cannot be parsed, one of more than 64 KiB or nested more than 50 deep. If the words of a deny rule stand in such a text,
// it is denied. Variables that change what runs (PATH, LD_*, GIT_*, *FLAGS, …) before a command, for the rest of the line or in the
// environment that a job sets make it asked too.
//
// A redirect is judged as write_file or read_file on its file. A command that is allowed by its words writes only where a rule such as edit(build/**) allows it;
// /dev/null and open descriptors are free. After cd, env -C or -execdir, relative names are not known any more.
//
// # Paths: edit(pattern), read(pattern), and any tool with a path
//
// The spec is a glob (* ? […] {a,b} within a level, ** over levels) over paths relative to the root of the workspace. A path is folded and its symlinks
// are followed first: an allow rule is about where it leads, one that denies or asks about both its names. What leads outside matches no
// allow rule. An allow rule is about the tools that it names. A rule that denies or asks is about every tool that does to the file what the named
// one does: edit_file(x) protects x from write_file, apply_patch and redirects too, and read_file(x) from grep, git_diff and the edits that show what they
// change. On a folder, an allow rule must cover all below it; grep and glob leave out what rules keep from the agent ([Set.Filter]), and git's tools are asked
// where a folder may hold it. The agent's scratch folder, with the kept output of its commands, is not a matter of patterns.
//
// # Hosts: web_fetch(domain:host)
//
// A name is for itself; "*." and a name for every name below it, and not for itself; an address for itself in whatever form netip reads. Capitals and a dot at
// the end make no difference. International names are written in their xn-- form; a host in an odd form (a number, other letters) is asked.
// Package policy matches the domains of a network in the same way.
//
// # What it is not
//
// Rules judge names before a call, from its text. What a script, a Makefile or a test does once it runs, and what a swapped symlink does between the
// decision and the call, they cannot see: that is held by package sandbox and by the workspace's own root. A rule that denies `git push` keeps
// an agent from it as an honest model goes about it, and from every way round it that the text of a command shows.
//
// # How it is made
//
// words.go matches words of which some are not known; shell.go, shellword.go and shellvars.go list what a parsed text runs; commands.go,
// wrappers.go and searchers.go know the programs that run others; paths.go and domain.go match the rest; spec.go and rules.go read rules, subjects.go is the table
// of tools; decide.go and decide_command.go put it together.
//
// Promises: a decision runs nothing and opens no file but to look up paths; it ends soon whatever the text is; and no rule that allows covers a
// command line in which any simple command is not covered. The tests hold the last one against a real shell: whatever is allowed is run, and
// the command that nobody allowed is not among what runs.
package rules
