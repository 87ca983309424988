package tools

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

type gitStatusArgs struct {
	Path string `json:"path,omitempty" jsonschema:"file or folder"`
}

func gitStatus() Tool {
	return define("git_status", Read,
		"Shows branch, merge state and changed, staged and new files. Contents: git_diff.",
		func(ctx context.Context, c *Call, a gitStatusArgs) (Output, error) {
			return c.withGit(ctx, a.Path, runGitStatus)
		})
}

func runGitStatus(ctx context.Context, g *gitCall) (Output, error) {
	if g.bare {
		return Output{}, g.noFiles()
	}
	st, err := g.status(ctx)
	if err != nil {
		return Output{}, err
	}
	head := []string{st.branch()}
	if under := g.underWay(st.conflicts.total); under != "" {
		head = append(head, under)
	}
	what := "nothing changed"
	if g.spec != "." {
		what += " in " + g.shown(g.spec)
	}
	head = append(head, st.counts(what))
	notes, err := g.filterNote(ctx, st.modified)
	if err != nil {
		return Output{}, err
	}
	rows := st.rows()
	p := page{head: strings.Join(head, "\n"), rows: rows[:min(len(rows), g.Caps.ListEntries)], offset: 1, total: st.total(), what: "the status", unit: "entries",
		foot: notes, rest: "ask for less with path"}
	return p.output(g.Room), nil
}

// noFiles is the error of a tool that needs a work tree.
func (g *gitCall) noFiles() error {
	return fail(Input, "%s is a bare repository, which has no files; git_log works, and git_diff with ref a..b", shownName(shorten(g.base, 200)))
}

// group is entries of one kind: rows of the first, and how many there are.
type group struct {
	rows  []string
	total int64
	most  int // rows that are kept
}

func (g *group) add(format string, a ...any) {
	if g.total++; len(g.rows) < g.most {
		g.rows = append(g.rows, fmt.Sprintf(format, a...))
	}
}

// status is what git says of the files, while it says it.
type status struct {
	g *gitCall

	commit, head, upstream, apart string // of the branch
	conflicts, staged, unstaged   group
	untracked                     group
	modified                      []string // paths of the repository whose content differs from the index, as many as rows
	renamed                       string   // a record of a rename that waits for the old name
}

// status asks git for it.
func (g *gitCall) status(ctx context.Context) (*status, error) {
	if err := g.useIndexCopy(); err != nil {
		return nil, err
	}
	st := &status{g: g}
	for _, one := range []*group{&st.conflicts, &st.staged, &st.unstaged, &st.untracked} {
		one.most = g.Caps.ListEntries
	}
	args := []string{"status", "--porcelain=v2", "-z", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty", "--find-renames"}
	return st, g.records(ctx, st.record, append(args, g.limit()...)...)
}

// record takes one record of git's second format for programs.
func (st *status) record(s string) {
	if st.renamed != "" {
		fields := strings.SplitN(st.renamed, " ", 10)
		st.renamed = ""
		st.tracked(fields[1], fields[2], fields[9], s)
		return
	}
	kind, rest, _ := strings.Cut(s, " ")
	switch kind {
	case "#":
		name, value, _ := strings.Cut(rest, " ")
		if to, ok := map[string]*string{"branch.oid": &st.commit, "branch.head": &st.head, "branch.upstream": &st.upstream, "branch.ab": &st.apart}[name]; ok {
			*to = value
		}
	case "1":
		if fields := strings.SplitN(s, " ", 9); len(fields) == 9 {
			st.tracked(fields[1], fields[2], fields[8], "")
		}
	case "2":
		if strings.Count(s, " ") >= 9 {
			st.renamed = s
		}
	case "u":
		if fields := strings.SplitN(s, " ", 11); len(fields) == 11 {
			st.conflicts.add("conflict (%s)  %s", conflictWords(fields[1]), st.g.shown(fields[10]))
		}
	case "?":
		st.untracked.add("untracked  %s", st.name(rest))
	}
}

// name is a path as it is shown; a folder keeps its slash.
func (st *status) name(path string) string {
	if strings.HasSuffix(path, "/") {
		return st.g.shown(path) + "/"
	}
	return st.g.shown(path)
}

// tracked takes a file that git keeps: what differs between commit and index, and between index and file.
func (st *status) tracked(xy, sub, path, old string) {
	if len(xy) != 2 {
		return
	}
	name := st.g.shown(path)
	if sub != "" && sub[0] == 'S' {
		name += " (submodule)"
	}
	if xy[0] != '.' {
		shown := name
		if old != "" && (xy[0] == 'R' || xy[0] == 'C') {
			shown = st.g.shown(old) + " → " + name
		}
		st.staged.add("staged (%s)  %s", changeWord(xy[0]), shown)
	}
	if xy[1] != '.' {
		shown := name
		if old != "" && (xy[1] == 'R' || xy[1] == 'C') {
			shown = st.g.shown(old) + " → " + name
		}
		st.unstaged.add("not staged (%s)  %s", changeWord(xy[1]), shown)
		if xy[1] == 'M' && len(st.modified) < st.g.Caps.ListEntries {
			st.modified = append(st.modified, path)
		}
	}
}

func changeWord(c byte) string {
	switch c {
	case 'M':
		return "modified"
	case 'A':
		return "new"
	case 'D':
		return "deleted"
	case 'R':
		return "renamed"
	case 'C':
		return "copied"
	case 'T':
		return "other kind of file"
	}
	return string(c)
}

// conflictWords says what two sides did to a file.
func conflictWords(xy string) string {
	words := map[string]string{
		"DD": "both deleted", "AU": "added by us", "UD": "deleted by them", "UA": "added by them", "DU": "deleted by us", "AA": "both added", "UU": "both modified",
	}
	if w, ok := words[xy]; ok {
		return w
	}
	return "unmerged"
}

func (st *status) groups() []*group {
	return []*group{&st.conflicts, &st.staged, &st.unstaged, &st.untracked}
}

func (st *status) rows() []string {
	var rows []string
	for _, one := range st.groups() {
		rows = append(rows, one.rows...)
	}
	return rows
}

func (st *status) total() (n int64) {
	for _, one := range st.groups() {
		n += one.total
	}
	return n
}

// counts is a line of how many entries there are of each kind, or none.
func (st *status) counts(none string) string {
	var parts []string
	for i, word := range []string{"in conflict", "staged", "not staged", "untracked"} {
		if n := st.groups()[i].total; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}

// shortHash is as much of a commit's name as tells it from others.
func shortHash(id string) string { return id[:min(len(id), 10)] }

// branch is a line of where the work stands.
func (st *status) branch() string {
	line := "on branch " + shownName(st.head)
	if st.head == "(detached)" {
		line = "detached HEAD"
	}
	if st.commit == "(initial)" {
		return line + ", no commits yet"
	}
	line += " at " + shortHash(st.commit)
	var ahead, behind int
	if _, err := fmt.Sscanf(st.apart, "+%d -%d", &ahead, &behind); err == nil {
		line += fmt.Sprintf(", %d ahead of and %d behind %s", ahead, behind, shownName(st.upstream))
	}
	return line
}

// underWay says what stands half done in the repository.
func (g *gitCall) underWay(conflicts int64) string {
	read := func(name string) string {
		b, _ := g.read(filepath.Join(g.dir, name)) // what cannot be read is not under way
		line, _, _ := strings.Cut(string(b), "\n")
		return shorten(strings.TrimSpace(line), 100)
	}
	next := "; git_commit concludes it"
	if conflicts > 0 {
		next = "; mend the files in conflict, then git_commit with them in paths"
	}
	rebase := func(dir, step, of string) string {
		return fmt.Sprintf("a rebase of %s is under way (step %s of %s); %s", shownName(strings.TrimPrefix(read(dir+"/head-name"), "refs/heads/")), shownName(read(dir+"/"+step)), shownName(read(dir+"/"+of)),
			g.byHand("go on with it in run_command: git rebase --continue, or --abort", "only the user can go on with it"))
	}
	switch {
	case read("rebase-merge/end") != "":
		return rebase("rebase-merge", "msgnum", "end")
	case read("rebase-apply/last") != "":
		return rebase("rebase-apply", "next", "last")
	case read("MERGE_HEAD") != "":
		return "a merge of " + shownName(shortHash(read("MERGE_HEAD"))) + " is under way" + next
	case read("CHERRY_PICK_HEAD") != "":
		return "a cherry-pick of " + shownName(shortHash(read("CHERRY_PICK_HEAD"))) + " is under way" + next
	case read("REVERT_HEAD") != "":
		return "a revert of " + shownName(shortHash(read("REVERT_HEAD"))) + " is under way" + next
	case read("BISECT_LOG") != "":
		return "a bisect is under way"
	}
	return ""
}
