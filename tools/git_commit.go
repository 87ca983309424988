package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"muster/board"
	"muster/budget"
	"muster/tools/git"
)

type gitCommitArgs struct {
	Message string   `json:"message" jsonschema:"commit message"`
	Paths   []string `json:"paths,omitempty" jsonschema:"files; none: what is staged"`
}

func gitCommit() Tool {
	return define("git_commit", Write,
		"Commits what is staged, or just the given paths; returns hash and stat. It may ask, and runs no hooks.",
		func(ctx context.Context, c *Call, a gitCommitArgs) (Output, error) {
			if err := c.mayCommit(a); err != nil {
				return Output{}, err
			}
			first := "."
			if len(a.Paths) > 0 {
				first = a.Paths[0]
			}
			return c.withCommit(ctx, first, func(ctx context.Context, g *gitCall) (Output, error) { return runGitCommit(ctx, g, a) })
		})
}

// mayCommit refuses what can be refused without a look at the repository.
func (c *Call) mayCommit(a gitCommitArgs) error {
	switch {
	case strings.TrimSpace(a.Message) == "":
		return fail(Input, "the message is blank; say what changes and why")
	case strings.ContainsRune(a.Message, 0):
		return fail(Input, "the message has a NUL character, which git takes in no message; remove it")
	case c.Tree.ReadOnly:
		return fail(Permission, "this job only reads; finish without a commit")
	}
	return nil
}

func runGitCommit(ctx context.Context, g *gitCall, a gitCommitArgs) (Output, error) {
	if g.bare {
		return Output{}, g.noFiles()
	}
	var specs []string
	for _, p := range a.Paths {
		r, err := g.findRepository(p)
		if err != nil {
			return Output{}, err
		}
		if r.dir != g.dir {
			return Output{}, fail(Input, "%s and %s are in two repositories; commit to each by itself", shownName(shorten(a.Paths[0], 200)), shownName(shorten(p, 200)))
		}
		specs = append(specs, r.spec)
	}
	g.spec = "." // counts and files are of the whole commit
	hooks := g.hooks()
	err := g.gate(hooks)
	switch {
	case err != nil:
	case len(specs) == 0:
		err = g.commitStaged(ctx, a.Message)
	case g.half() != "":
		err = g.commitHalf(ctx, specs, a.Message)
	default:
		err = g.commitPaths(ctx, specs, a.Message)
	}
	if err != nil {
		return Output{}, err
	}
	return g.committed(ctx, hooks)
}

// half is the state of a merge and the like that the next commit concludes, which is then one of the whole index.
func (g *gitCall) half() string {
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if _, err := g.stat(filepath.Join(g.dir, name)); err == nil {
			return name
		}
	}
	return ""
}

// commitStaged commits the index as it is.
func (g *gitCall) commitStaged(ctx context.Context, message string) error {
	staged, err := g.staged(ctx)
	if err != nil {
		return err
	}
	if staged.total == 0 && g.half() != "MERGE_HEAD" {
		st, err := g.status(ctx)
		if err != nil {
			return err
		}
		return fail(Input, "nothing is staged, so there is nothing to commit (%s); name the files to commit in paths", st.counts("nothing changed"))
	}
	return g.commitIndex(ctx, message)
}

// staged are the files in which the index differs from the last commit. Files in conflict are an error.
func (g *gitCall) staged(ctx context.Context) (*changes, error) {
	conflicts := &group{most: g.Caps.ListEntries}
	err := g.records(ctx, func(name string) {
		if len(conflicts.rows) == 0 || conflicts.rows[len(conflicts.rows)-1] != g.shown(name) {
			conflicts.add("%s", g.shown(name))
		}
	}, "diff", "--cached", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff")
	if err != nil {
		return nil, err
	}
	if conflicts.total > 0 {
		return nil, fail(Conflict, "%s in conflict: %s; mend them, then name them in paths", plural(conflicts.total, "file"), shorten(strings.Join(conflicts.rows, ", "), 1000))
	}
	c := &changes{most: g.Caps.WalkFiles}
	return c, g.records(ctx, c.record, append(diffFlags(".", []string{"--cached"}, "--numstat", "-z", "--no-renames"), "--")...)
}

// commitIndex makes the commit of the index that git works with.
func (g *gitCall) commitIndex(ctx context.Context, message string) error {
	return g.run.Run(ctx, g.at, strings.NewReader(message), nil,
		"commit", "--quiet", "--no-verify", "--no-gpg-sign", "--no-status", "--cleanup=whitespace", "--file=-")
}

// commitPaths commits what the files hold now, and nothing else: an index of its own begins as the last commit and gets these files. What else is staged
// stays staged.
func (g *gitCall) commitPaths(ctx context.Context, specs []string, message string) error {
	return g.withOwnIndex(ctx, func() error {
		read := []string{"read-tree", "--reset", "HEAD"}
		if g.unborn(ctx) {
			read = []string{"read-tree", "--empty"}
		}
		if err := g.git(ctx, nil, read...); err != nil {
			return err
		}
		staged, err := g.stage(ctx, specs)
		if err == nil && staged.total == 0 {
			err = fail(Input, "nothing changed in %s since the last commit; git_status shows what did", shorten(strings.Join(specs, ", "), 500))
		}
		if err != nil {
			return err
		}
		return g.commitIndex(ctx, message)
	}, append([]string{"reset", "--quiet", "--"}, specs...)...)
}

// commitHalf concludes a merge and the like with what the files hold now, and what else is staged: such a commit is one of the whole.
func (g *gitCall) commitHalf(ctx context.Context, specs []string, message string) error {
	return g.withOwnIndex(ctx, func() error {
		if _, err := g.stage(ctx, specs); err != nil {
			return err
		}
		return g.commitIndex(ctx, message)
	}, "read-tree", "--reset", "HEAD")
}

// withOwnIndex has git work with a copy of the index, so that a commit that fails leaves the real one as it was; after one that does not, git follows
// with it by other arguments.
func (g *gitCall) withOwnIndex(ctx context.Context, commit func() error, follow ...string) error {
	if _, err := g.stat(filepath.Join(g.dir, "index.lock")); err == nil {
		return fail(Transient, "another git is at work (index.lock is there); try again, and if none is, %s", g.byHand("remove that file with run_command", "name that file in your answer"))
	}
	real := g.at.Index
	g.at.Index = filepath.Join(g.temp, "index")
	err := g.copyIndex(g.at.Index)
	if err == nil {
		err = commit()
	}
	g.at.Index = real
	if err != nil {
		return err
	}
	if err := g.git(ctx, nil, follow...); err != nil {
		g.after = fmt.Sprintf("[it was committed, but the index could not follow: %v]", g.failed(err))
	}
	return nil
}

// indexBytes bounds an index that is copied: that of a repository of some million files.
const indexBytes = 1 << 30

// copyIndex copies the index, with its time: by that git tells files that changed in the same instant. Where there is none, nothing is copied.
func (g *gitCall) copyIndex(to string) error {
	in, err := g.open(filepath.Join(g.dir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, indexBytes+1))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil && n > indexBytes {
		err = fail(Permanent, "the index of the repository has more than %d bytes; go on without a commit", indexBytes)
	}
	if err != nil {
		return err
	}
	giveLike(to, info)
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// stage puts what files hold into the index that git works with. One that a filter keeps elsewhere is refused.
func (g *gitCall) stage(ctx context.Context, specs []string) (*changes, error) {
	if err := g.git(ctx, nil, append([]string{"add", "--all", "--"}, specs...)...); err != nil {
		return nil, notAdded(err)
	}
	staged, err := g.staged(ctx)
	if err != nil {
		return nil, err
	}
	var there []string
	args := append([]string{"diff", "--cached", "--name-only", "--diff-filter=d", "--no-renames", "-z", "--no-ext-diff", "--"}, specs...)
	if err := g.records(ctx, func(name string) { there = append(there, name) }, args...); err != nil {
		return nil, err
	}
	names, err := g.filtered(ctx, there)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, fail(Permanent, "%s is kept through a filter (%s of .gitattributes), and filters are not run here: leave it out", g.shown(names[0].path), shownName(shorten(names[0].filter, 100)))
	}
	return staged, nil
}

// notAdded is why files could not be staged.
func notAdded(err error) error {
	var said *git.Error
	switch {
	case !errors.As(err, &said):
	case strings.Contains(said.Says, "did not match any files"):
		return fail(Input, "%s; git_status lists what changed", gitSays(said))
	case strings.Contains(said.Says, "ignored by"):
		return fail(Input, "%s; leave it out", gitSays(said))
	}
	return err
}

// committed is the receipt of a commit.
func (g *gitCall) committed(ctx context.Context, hooks []hook) (Output, error) {
	list, err := g.log(ctx, []string{"HEAD"}, 0, 1)
	if err != nil || len(list) == 0 {
		return Output{Text: "committed, but what was committed could not be looked at"}, err
	}
	e := list[0]
	stat, err := g.filesOf(ctx, e.id)
	if err != nil {
		return Output{Text: "committed " + e.id}, err
	}
	where := "on a detached HEAD: no branch keeps it"
	if branch, err := g.line(ctx, "symbolic-ref", "--short", "--quiet", "HEAD"); err == nil {
		where = "on branch " + shownName(shorten(branch, 200))
	}
	p := page{head: fmt.Sprintf("committed %s %s: %s\n%s", e.id, where, oneRow(e.subject, 200), stat.sum()), rows: stat.rows(g), offset: 1, total: stat.total,
		what: "the commit", unit: "files", rest: "git_log with count 1 and a path lists them"}
	notes := []string{g.after}
	if g.config.Anonymous() {
		notes = append(notes, fmt.Sprintf("[no identity is configured: committed as %s <%s>]", git.NobodyName, git.NobodyEmail))
	}
	if names := hookNames(hooks); names != "" {
		notes = append(notes, fmt.Sprintf("[not run: the repository's hooks %s]", names))
	}
	p.foot = joined(notes...)
	out := p.output(g.Room)
	for _, f := range stat.files {
		out.Facts.Files = append(out.Facts.Files, board.FileStat{Path: path.Join(g.base, f.Path), Added: max(0, f.Added), Removed: max(0, f.Removed)})
	}
	return out, nil
}

// hook is a program of the repository that git would run for a commit.
type hook struct {
	name string
	file string // absolute
	gate bool   // it can refuse the commit
}

// commitHooks are the hooks of a commit.
var commitHooks = []hook{
	{name: "pre-commit", gate: true}, {name: "commit-msg", gate: true}, {name: "pre-merge-commit"}, {name: "prepare-commit-msg"}, {name: "post-commit"},
	{name: "reference-transaction"}, {name: "post-index-change"},
}

// hooks are those that the repository has.
func (g *gitCall) hooks() []hook {
	dir := filepath.Join(g.common, "hooks")
	if own := g.config.Get("core.hookspath"); own != "" {
		if dir = own; !filepath.IsAbs(dir) {
			dir = filepath.Join(g.top, dir)
		}
	}
	var found []hook
	for _, h := range commitHooks {
		h.file = filepath.Join(dir, h.name)
		if info, err := g.Tree.Stat(h.file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			found = append(found, h)
		}
	}
	return found
}

func hookNames(hooks []hook) string {
	var names []string
	for _, h := range hooks {
		names = append(names, h.name)
	}
	return strings.Join(names, ", ")
}

// What is shown of a hook.
const (
	hookLines = 30
	hookChars = 200 // of a line
)

// gate refuses a commit that a hook of the repository would have to pass. It is not run here, and who put it there does not want it passed over: so it
// is shown, and the way on is to run it as any other command.
func (g *gitCall) gate(hooks []hook) error {
	for _, h := range hooks {
		if !h.gate {
			continue
		}
		text := ""
		if b, err := g.readSmall(h.file); err == nil {
			e, kind := sniff(b)
			body, _ := e.decode(b)
			lines := strings.Split(strings.TrimRight(body, "\n"), "\n")
			for i, l := range lines {
				if kind != "" || i == hookLines {
					text += fmt.Sprintf("\n  | … (%s in all)", plural(int64(len(b)), "byte"))
					break
				}
				text += "\n  | " + oneRow(l, hookChars)
			}
		}
		return fail(Permanent, "nothing was committed: the hook %s of the repository may refuse a commit, hooks are not run here, and no commit goes past one; do what it checks, %s. %s is:%s",
			h.name, g.byHand("then commit with run_command: git commit, which runs it", "and leave the commit to the user"), shownName(shorten(relName(g.Call, h.file), 200)), budget.Plain(text))
	}
	return nil
}
