// Package workspace is an agent's own files: where they come from, how they are reached, and how what changed leaves.
//
// # The life of a tree
//
// Somebody submits work on a folder. [Cache.Snapshot] makes a commit of the folder as it is (history, changes,
// untracked files that are not ignored) without changing a byte of it, and writes it as a git bundle, which the
// caller stores where every machine can read it. A worker that takes the work calls [Cache.Checkout]: the bundle is
// fetched if this machine lacks the commit, every object in it is checked, and the attempt gets a [Tree]: files of
// its own, with a repository of their own, and a scratch folder beside them (with a home and a tmp for commands, and
// the kept output of [Tree.Spill]). Attempts that only read share one tree of a commit. The tools read and write
// through the Tree. [Tree.Changes] tells what became of the files as a patch, and [Tree.Close] removes them.
// [Cache.InPlace] and [OpenDir] make a Tree of a folder itself instead; nothing but the tools' own writes changes it.
//
// # Promises
//
// Nothing leaves the root. Every access goes through os.Root, whatever is swapped under it meanwhile; `..` and
// absolute paths are fine as long as they stay inside, and symlinks are followed inside only. Only regular files on
// the root's own mount are opened, and nothing waits on a FIFO. A path is folded by its text before it is looked at,
// so each file has one name in messages and results. Modes are kept; access control lists and extended attributes are
// not.
//
// Files change by [Tree.Commit] only: all of its files or none, on a full disk too, and each in one step, so that whoever
// reads sees the old file or the new one. The one exception to that step is a file with several hard links inside the
// root, which is written in place. A file that does not hold what the caller has read is not written, also where it
// changes in the same moment; a process that replaces files all the time cannot make a commit lose what it wrote.
//
// A commit to the files of a tree of a Cache survives the end of its process. Before it changes anything it writes down
// there, where no agent reaches, what it is about to do. If the process ends before all is done, the commit is undone,
// and after that finished, by whichever comes first: the next commit to the folder, [Cache.Folder], [Cache.InPlace],
// [Cache.Checkout] of the attempt, or [Cache.Reclaim]. What somebody wrote into one of its files meanwhile stays. The
// new and the old contents stand beside their files until then, under names that begin with ".muster-".
//
// The folder of a snapshot is only read. git works in a repository of ours with our configuration, and only lists
// names: contents are read by us and stored as they are. So nothing that a repository configures is run (hooks,
// filters, fsmonitor, submodules) and no byte is converted. Unchanged tracked files come as git has them: with
// git-lfs that is the pointer, with eol=crlf the file with LF. Git has no empty folders; nested repositories and
// submodules, files that cannot be read, over 4 GiB or named like a repository are left out, and said in
// [Snapshot.Left]; FIFOs, sockets and devices are passed over.
//
// What comes in a bundle is refused unless fsck finds it sound and complete. The tree's own repository belongs to the
// agent: nothing it writes there is read, run or believed by anything else, but for the names that it tracks or
// excludes, which [Tree.Walk] asks for.
//
// Work is not lost with its process. Each tree is locked while its process lives. What a dead one left is found by
// [Cache.Reclaim]: the changes in it are saved as a patch in the cache's folder "saved" (the latest hundred), then it
// goes. The same holds for a tree that is closed before anybody asked for its changes ([Tree.Saved]). A removal
// follows no symlink, enters no mount, and reports what it could not remove.
//
// # Not here yet
//
// A bundle holds the whole history each time, and a checkout writes every file: packs of deltas, overlays over a
// cached base, checkpoints in the middle of an attempt, merging a patch back and a disk quota belong to a later
// step and fit behind the same face. The store of commits only grows until then. Files are written with the
// process's own user, and git runs in a process group of its own rather than in a sandbox: it runs nothing that a
// repository names (package tools/git), but a fault in git itself would be one of this process's user. A box for it must
// see a user's folder, what that borrows objects from, and the cache, and as root a box shows the files of one owner
// only; it would cost some 3 to 5 ms a run. What unpacks a bundle and checks out a tree works in the cache alone, and
// can go into a box first.
package workspace
