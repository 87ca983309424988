package tools

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/budget"
	"muster/tools/git"
)

type gitLogArgs struct {
	Path   string `json:"path,omitempty" jsonschema:"file or folder"`
	Ref    string `json:"ref,omitempty" jsonschema:"commit or a..b"`
	Count  int64  `json:"count,omitempty" default:"log_count" min:"1" max:"log_count" jsonschema:"commits; 1 shows the whole message"`
	Offset int64  `json:"offset,omitempty" min:"1" jsonschema:"first commit"`
}

func gitLog() Tool {
	return define("git_log", Read,
		"Lists commits, newest first: hash, date, author, subject. Contents: git_diff with ref.",
		func(ctx context.Context, c *Call, a gitLogArgs) (Output, error) {
			return c.withGit(ctx, a.Path, func(ctx context.Context, g *gitCall) (Output, error) { return runGitLog(ctx, g, a) })
		})
}

// logEntry is a commit as git log prints it here.
type logEntry struct {
	id, short, date, author, refs, subject, message string
	lost                                            int64 // bytes at the end of the message that were not kept
}

// logFormat gives the fields of a logEntry a line each, and the message to the end of the record.
const logFormat = "--format=%H%n%h%n%ad%n%an%n%D%n%B"

// logRecordBytes is the least that is kept of a record of a log: enough for a row.
const logRecordBytes = 4 << 10

func parseLog(s string) (e logEntry) {
	fields := strings.SplitN(s, "\n", 6)
	for i, to := range []*string{&e.id, &e.short, &e.date, &e.author, &e.refs, &e.message} {
		if i < len(fields) {
			*to = fields[i]
		}
	}
	first, _, _ := strings.Cut(strings.TrimLeft(e.message, "\n"), "\n\n")
	e.subject = strings.ReplaceAll(strings.TrimRight(first, "\n"), "\n", " ")
	return e
}

func runGitLog(ctx context.Context, g *gitCall, a gitLogArgs) (Output, error) {
	a.Offset = max(1, a.Offset)
	revs := []string{"HEAD"}
	if a.Ref != "" {
		s, err := g.revisions(ctx, a.Ref)
		if err != nil {
			return Output{}, err
		}
		revs = s.history()
	} else if g.unborn(ctx) {
		return Output{Text: "no commits yet"}, nil
	}
	list, err := g.log(ctx, revs, a.Offset-1, a.Count+1)
	if err != nil {
		return Output{}, err
	}
	p := page{offset: a.Offset, total: a.Offset - 1 + int64(len(list)), what: "the log", unit: "commits"}
	if g.spec != "." {
		p.what += " of " + g.shown(g.spec)
	}
	if int64(len(list)) > a.Count || len(list) == 0 && a.Offset > 1 {
		if p.total, p.unit, err = g.countCommits(ctx, revs, p.total); err != nil {
			return Output{}, err
		}
	}
	switch {
	case p.total == 0:
		return Output{Text: "no commits in " + p.what}, nil
	case len(list) == 0:
		return Output{}, fail(Input, "offset %d is past the end: %s has %s; give an offset of at most %d", a.Offset, p.what, plural(p.total, "commit"), p.total)
	}
	p.head = p.what + ": 1 commit"
	if p.total > 1 {
		p.head = fmt.Sprintf("%s: %d %s", p.what, p.total, p.unit)
	}
	list = list[:min(int64(len(list)), a.Count)]
	if a.Count == 1 {
		return g.oneCommit(ctx, list[0], p)
	}
	for _, e := range list {
		p.rows = append(p.rows, e.row())
	}
	return p.output(g.Room), nil
}

// log lists commits after the first skip ones.
func (g *gitCall) log(ctx context.Context, revs []string, skip, count int64) (list []logEntry, err error) {
	args := []string{"log", "-z", logFormat, "--date=format:%Y-%m-%d %H:%M", "--no-color", "--no-mailmap", "--no-notes", "--decorate=short",
		"--max-count=" + strconv.FormatInt(count, 10), "--skip=" + strconv.FormatInt(skip, 10)}
	out := &git.Records{Most: max(g.Caps.GitBytes/int(count), logRecordBytes)}
	out.Fn = func(s string) error {
		e := parseLog(s)
		e.lost = out.Lost
		list = append(list, e)
		return nil
	}
	return list, g.git(ctx, out, append(append(args, revs...), g.limit()...)...)
}

// history is the commits of a range as git log takes them.
func (s revisions) history() []string {
	switch s.dots {
	case "":
		return []string{s.to}
	case "...":
		return []string{s.from + "..." + s.to}
	}
	return []string{s.from + ".." + s.to}
}

// errCounting is the cause of the end of a count that took too long.
var errCounting = errors.New("counting takes too long")

// countCommits says how many commits a log has in all. Where that takes too long, it is as many as are known, and the unit says that there may be more.
func (g *gitCall) countCommits(ctx context.Context, revs []string, known int64) (n int64, unit string, err error) {
	counting, cancel := context.WithTimeoutCause(ctx, time.Duration(g.Caps.WalkSecs)*time.Second, errCounting)
	defer cancel()
	text, err := g.line(counting, append(append([]string{"rev-list", "--count"}, revs...), g.limit()...)...)
	if errors.Is(err, errCounting) {
		return known, "or more commits", nil
	} else if err != nil {
		return 0, "", err
	}
	if n, err = strconv.ParseInt(text, 10, 64); err != nil {
		return 0, "", &git.Error{Op: "rev-list", Err: err}
	}
	return max(n, known), "commits", nil
}

// row is a commit on one line.
func (e logEntry) row() string {
	refs := ""
	if e.refs != "" {
		refs = " (" + shownName(shorten(e.refs, 200)) + ")"
	}
	return fmt.Sprintf("%s %s %s: %s%s", e.short, e.date, oneRow(e.author, 100), oneRow(e.subject, 300), refs)
}

// oneRow is a text of others on one line.
func oneRow(s string, chars int) string {
	s, _, _ = visible(s)
	return shorten(s, chars)
}

// oneCommit is a commit with its whole message and its files.
func (g *gitCall) oneCommit(ctx context.Context, e logEntry, log page) (Output, error) {
	stat, err := g.filesOf(ctx, e.id)
	if err != nil {
		return Output{}, err
	}
	list := page{head: stat.sum(), rows: stat.rows(g), offset: 1, total: stat.total, what: "the commit", unit: "files", rest: "ask for a folder with path"}
	files := list.output(g.Room / 3)
	older, facts := log.notice(1)
	head := []string{log.head, "commit " + e.id, "author " + oneRow(e.author, 200) + ", " + e.date}
	if e.refs != "" {
		head = append(head, "refs "+oneRow(e.refs, 500))
	}
	p := page{head: strings.Join(head, "\n"), offset: 1, what: "the message", unit: "lines", foot: joined(files.Text, older), rest: "git log in run_command shows it"}
	for l := range strings.SplitSeq(strings.TrimRight(e.message, "\n"), "\n") {
		p.rows = append(p.rows, strings.TrimRight("    "+oneRow(l, g.Caps.ReadLineChars), " "))
	}
	p.total = int64(len(p.rows))
	if e.lost > 0 {
		lost := budget.Cut{What: "the message", Unit: "bytes", Shown: int64(len(e.message)), Total: int64(len(e.message)) + e.lost}
		p.foot = joined(lost.Notice(p.rest), p.foot)
		facts.Cuts = append(facts.Cuts, lost)
	}
	out := p.output(g.Room)
	out.Facts.Cuts = append(append(out.Facts.Cuts, files.Facts.Cuts...), facts.Cuts...)
	return out, nil
}

// filesOf are the files that a commit changed, against its first parent.
func (g *gitCall) filesOf(ctx context.Context, id string) (*changes, error) {
	c := &changes{most: g.Caps.ListEntries}
	args := []string{"diff-tree", "--root", "-r", "--no-commit-id", "--diff-merges=first-parent", "--no-ext-diff", "--no-textconv", "--no-color",
		"--find-renames", "--ignore-submodules=dirty", "--numstat", "-z", id}
	return c, g.records(ctx, c.record, append(args, g.limit()...)...)
}
