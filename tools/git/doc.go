// Package git runs git on a repository that nobody trusts, so that git works on what the repository holds and never does what it says.
//
// # What a repository can say
//
// A repository's configuration names programs: hooks, a watcher (core.fsmonitor), filters, text converters, external diffs and merge drivers, ssh
// commands, editors, pagers, signers, credential helpers, aliases. It includes other files, under conditions. It moves the work tree, and names remotes
// that git asks for missing objects. Flags of a command line switch off what they name, and the names of filters and drivers are anyone's:
// `git -c` is no way out.
//
// # What is done instead
//
// git never sees that configuration. It can read a repository in two parts: what belongs to one work tree (GIT_DIR: HEAD, the index, a merge under way)
// and what several share (GIT_COMMON_DIR: the configuration, hooks, attributes). The first is the repository's own folder, as it is. The second is a
// [View]: a folder of ours that git may only read, with a configuration of ours. References, their logs and objects are found by symlinks and by
// GIT_OBJECT_DIRECTORY. So a filter or driver that an attribute names does not exist, there is no hook, nothing is included, and what git writes (a commit)
// is in the repository itself. The user's and the system's configuration are switched off by the environment, which is ours as well ([Repo.Env]).
//
// Of the repository's configuration, a View takes over what is data: a list in config.go, such as user.name, core.autocrlf or branch.main.merge. An
// extension of the format that is not known refuses the repository, as git itself does; one that is known and would fetch (partialClone) is left out,
// and a missing object is an error.
//
// Attributes that convert text (eol, ident, working-tree-encoding) still hold: they name no program. A path with a filter (git-lfs) is compared as it
// lies on the disk, and [Config] cannot tell whether there is one: ask git for the attribute before something is stored.
//
// [Flags] and [Repo.Env] say the rest, and hold for every run, whoever makes it. Whoever runs git on files of an agent does so in a sandbox as well:
// a fault in git itself is not a matter of configuration.
//
// # Linked work trees
//
// The repository of a linked work tree lies outside of it, and a file in the tree says where. Anyone can write such a file. [LinkedTo] believes it only
// where the repository names that very tree in return, which nobody can bring about who cannot write there.
package git
