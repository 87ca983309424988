package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// search is the arguments of grep.
type search struct {
	Pattern string `json:"pattern"`
	Regex   bool   `json:"regex,omitempty"`
	Fold    bool   `json:"ignore_case,omitempty"`
	All     bool   `json:"no_ignore,omitempty"`
}

// names is the arguments of glob.
type names struct {
	Pattern string `json:"pattern"`
	All     bool   `json:"no_ignore,omitempty"`
}

// command is the arguments of run_command.
type command struct {
	Command string `json:"command"`
	Secs    int    `json:"timeout_secs,omitempty"`
}

// rows lists all comparisons. The targets are those of the project's table of targets.
func rows() []row {
	var all []row
	for _, where := range []string{"go", "tree"} {
		for _, g := range []struct {
			name string
			search
			sorted bool
			target float64
		}{
			{"rare literal", search{Pattern: map[string]string{"go": "ErrAbortHandler", "tree": rareWord}[where]}, false, 1},
			{"rare literal, sorted", search{Pattern: map[string]string{"go": "ErrAbortHandler", "tree": rareWord}[where]}, true, 0.6},
			{"common literal", search{Pattern: "return"}, false, 1},
			{"common literal, sorted", search{Pattern: "return"}, true, 0.6},
			{"ignoring case", search{Pattern: "client", Fold: true}, false, 1},
			{"regex with a literal", search{Pattern: map[string]string{"go": `func \(\w+ \*\w+\) Close`, "tree": `result [a-z]+ error`}[where], Regex: true}, false, 1.3},
			{"regex without", search{Pattern: `\b[A-Z][a-z]+ [0-9]{4}\b`, Regex: true}, false, 4},
		} {
			all = append(all, grepRow(where, g.name, g.search, g.sorted, g.target))
		}
		all = append(all, globRow(where, false), globRow(where, true))
	}
	return append(all, ignoreRow(), firstRow(), trueRow(), drainRow("yes", "yes"), drainRow("zeros", "cat /dev/zero"), floodRow(), editRow(), patchRow())
}

func (l *lab) corpus(where string) (string, error) {
	if where == "go" {
		return l.goTree()
	}
	return l.made()
}

// whole is set for the Go tree, whose folders of the pruned names hold what counts; the made tree has its ignore rules.
func whole(where string) bool { return where == "go" }

func grepRow(where, name string, s search, sorted bool, target float64) row {
	against := "rg"
	if sorted {
		against = "rg --sort path"
	}
	return row{name: "grep " + where + ": " + name, against: against, target: target, sides: func(l *lab) (ours, theirs side, err error) {
		rg, err := peer("ripgrep", "rg")
		if err != nil {
			return ours, theirs, err
		}
		dir, err := l.corpus(where)
		if err != nil {
			return ours, theirs, err
		}
		s.All = whole(where)
		ours, err = l.ours(dir, "grep", "", s)
		argv := []string{rg, "--hidden", "--no-heading", "--line-number", "--no-require-git", "--max-filesize", "1M"}
		if s.All {
			argv = append(argv, "--no-ignore")
		}
		if s.Fold {
			argv = append(argv, "--ignore-case")
		}
		if !s.Regex {
			argv = append(argv, "--fixed-strings")
		}
		if sorted {
			argv = append(argv, "--sort", "path")
		}
		return ours, side{argv: append(argv, "-e", s.Pattern, "."), dir: dir, count: lines}, err
	}}
}

func globRow(where string, sorted bool) row {
	r := row{name: "glob " + where + ": names by an ending", against: "fd", target: 0.9}
	ending := map[string]string{"go": "_test.go", "tree": "7.txt"}[where]
	if sorted {
		r.name, r.against = r.name+", sorted", "rg --files --sort path"
	}
	r.sides = func(l *lab) (ours, theirs side, err error) {
		dir, err := l.corpus(where)
		if err != nil {
			return ours, theirs, err
		}
		var argv []string
		if sorted {
			rg, err := peer("ripgrep", "rg")
			if err != nil {
				return ours, theirs, err
			}
			argv = []string{rg, "--files", "--hidden", "--no-require-git", "--sort", "path", "--glob", "*" + ending}
		} else {
			fd, err := peer("fd-find", "fdfind", "fd")
			if err != nil {
				return ours, theirs, err
			}
			argv = []string{fd, "--type", "f", "--hidden", "--glob", "*" + ending}
		}
		if whole(where) {
			argv = append(argv, "--no-ignore")
		}
		if !sorted && !whole(where) { // without a repository fd reads no rules of git: it is told of them
			argv = append(argv, "--no-ignore-vcs", "--exclude", "*.log", "--ignore-file", filepath.Join(dir, ".gitignore"))
		}
		ours, err = l.ours(dir, "glob", "", names{"**/*" + ending, whole(where)})
		return ours, side{argv: argv, dir: dir, count: lines}, err
	}
	return r
}

// ignoreRow is what reading the rules of .gitignore costs.
func ignoreRow() row {
	return row{name: "walk: with .gitignore", against: "ours without", target: 1.15, sides: func(l *lab) (ours, theirs side, err error) {
		dir, err := l.made()
		if err != nil {
			return ours, theirs, err
		}
		if ours, err = l.ours(dir, "glob", "", names{"**/nothing", false}); err == nil {
			theirs, err = l.ours(dir, "glob", "", names{"**/nothing", true})
		}
		return ours, theirs, err
	}}
}

// firstRow is the whole program, from its start: what a person waits for.
func firstRow() row {
	return row{name: "orchestrator call: grep", against: "rg", target: 2, sides: func(l *lab) (ours, theirs side, err error) {
		_, theirs, err = grepRow("tree", "", search{Pattern: rareWord}, false, 0).sides(l)
		if err != nil {
			return ours, theirs, err
		}
		theirs.count = nil
		program, err := l.program()
		call := fmt.Sprintf(`{"tool":"grep","args":{"pattern":%q}}`+"\n", rareWord)
		return side{argv: []string{program, "call", "--dir", theirs.dir}, stdin: call}, theirs, err
	}}
}

// trueRow is the least that a command costs, its sandbox being made for it alone.
func trueRow() row {
	return row{name: "run_command: twenty times true", against: "sh -c true, twenty times", sides: func(l *lab) (ours, theirs side, err error) {
		program, err := l.program()
		calls := strings.Repeat(`{"tool":"run_command","args":{"command":"true"}}`+"\n"+`{"tool":"todo_read"}`+"\n", 20)
		return side{argv: []string{program, "call", "--dir", l.tmp, "--sandbox-min", "limits"}, stdin: calls},
			side{argv: []string{"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sh -c 'true; exit 0'; done"}}, err
	}}
}

// drainRow is how fast output is taken in that nobody will see.
func drainRow(name, producer string) row {
	const bytes = 2_000_000_000
	return row{name: "drain 2 GB: " + name, against: "cat >/dev/null", target: map[string]float64{"yes": 1.2}[name], sides: func(l *lab) (ours, theirs side, err error) {
		line := fmt.Sprintf("%s | head -c %d", producer, bytes)
		ours, err = l.ours(l.tmp, "run_command", "", command{line, 3600})
		ours.count = nil
		return ours, side{argv: []string{"sh", "-c", line + " | cat >/dev/null"}}, err
	}}
}

// floodRow is the memory that a flood takes: ours of a flood beside ours of a word.
func floodRow() row {
	return row{name: "flood: memory", against: "ours, of one line", sides: func(l *lab) (ours, theirs side, err error) {
		if ours, err = l.ours(l.tmp, "run_command", "", command{fmt.Sprintf("yes | head -c %d", l.flood), 3600}); err == nil {
			theirs, err = l.ours(l.tmp, "run_command", "", command{"echo y", 0})
		}
		ours.count, theirs.count = nil, nil
		return ours, theirs, err
	}}
}

func editRow() row {
	return row{name: "edit a file of 10 MB", against: "sed -i", sides: func(l *lab) (ours, theirs side, err error) {
		dir, err := l.large()
		if err != nil {
			return ours, theirs, err
		}
		ours, err = l.ours(dir, "edit_file", "read_admit_bytes=67108864", map[string]string{
			"path": "file", "old_string": "line 100000 of a large", "new_string": "line 100000 of an edited"})
		ours.ready, ours.count = fresh(dir), nil
		return ours, side{argv: []string{"sed", "-i", "s/^line 100000 of a large/line 100000 of an edited/", filepath.Join(dir, "file")}, ready: fresh(dir)}, err
	}}
}

func patchRow() row {
	return row{name: "patch a file of 10 MB", against: "patch", sides: func(l *lab) (ours, theirs side, err error) {
		program, err := peer("patch", "patch")
		if err != nil {
			return ours, theirs, err
		}
		dir, err := l.large()
		if err != nil {
			return ours, theirs, err
		}
		diff, err := os.ReadFile(filepath.Join(dir, "patch"))
		if err != nil {
			return ours, theirs, err
		}
		ours, err = l.ours(dir, "apply_patch", "read_admit_bytes=67108864", map[string]string{"diff": string(diff)})
		ours.ready, ours.count = fresh(dir), nil
		return ours, side{argv: []string{program, "--silent", "-p1"}, dir: dir, stdin: string(diff), ready: fresh(dir)}, err
	}}
}
