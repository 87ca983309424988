package tools

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestGitStatus(t *testing.T) {
	const two = "echo a > a; echo k > k; git add .; git commit -qm one; echo b > a; git commit -qam two\n"
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"empty":    {"", []string{"on branch main, no commits yet\nnothing changed"}},
		"first":    {"echo a > a; echo b > b; git add b", []string{"no commits yet\n1 staged, 1 untracked\nstaged (new)  b\nuntracked  a"}},
		"clean":    {two, []string{"on branch main at ", "\nnothing changed"}},
		"detached": {two + "git checkout -q HEAD~1; echo x > x", []string{"detached HEAD at ", "untracked  x"}},
		"all kinds": {two + "git mv k k2; echo c > a; git add a; echo d > a; mkdir d; echo e > d/e; ln -s a l; git add -N l",
			[]string{"2 staged, 2 not staged, 1 untracked\nstaged (modified)  a\nstaged (renamed)  k → k2\nnot staged (modified)  a\nnot staged (new)  l\nuntracked  d/"}},
		"deleted, other kind": {two + "rm k; git rm -q a; ln -s k a", []string{"staged (deleted)  a", "not staged (deleted)  k", "untracked  a"}},
		"typechange":          {two + "rm k; ln -s a k", []string{"not staged (other kind of file)  k"}},
		"merge": {two + "git checkout -qb side HEAD~1; echo s > a; git commit -qam side; git checkout -q main; git merge side || true",
			[]string{"a merge of ", " is under way; mend the files in conflict, then git_commit with them in paths", "1 in conflict\nconflict (both modified)  a"}},
		"merge mended": {two + "git checkout -qb side HEAD~1; echo s > a; git commit -qam side; git checkout -q main; git merge side || true; echo m > a; git add a",
			[]string{" is under way; git_commit concludes it", "1 staged\nstaged (modified)  a"}},
		"conflicts": {two + "git checkout -qb side HEAD~1; git rm -q a; echo s > n; git add n; git commit -qm side; git checkout -q main; echo m > n; git add n; git commit -qm m; git merge side || true",
			[]string{"2 in conflict\nconflict (deleted by them)  a\nconflict (both added)  n"}},
		"rebase": {two + "git checkout -qb side HEAD~1; echo s > a; git commit -qam side; git rebase main || true",
			[]string{"detached HEAD at ", "a rebase of side is under way (step 1 of 1); only the user can go on with it", "conflict (both modified)  a"}},
		"cherry-pick": {two + "git checkout -qb side HEAD~1; echo s > a; git commit -qam side; git cherry-pick main || true", []string{"a cherry-pick of ", "conflict (both modified)  a"}},
		"revert":      {two + "echo c > a; git commit -qam three; git revert --no-edit HEAD~1 || true", []string{"a revert of ", "conflict (both modified)  a"}},
		"bisect":      {two + "git bisect start -q >&2", []string{"a bisect is under way"}},
		"upstream": {two + "git clone -q --bare . \"$OUT/up\"; git remote add origin \"$OUT/up\"; git fetch -q; git branch -q -u origin/main; git commit -q --allow-empty -m x",
			[]string{", 1 ahead of and 0 behind origin/main"}},
		"submodule": {two + "git init -q sub; cd sub; " + identity + "echo s > s; git add s; git commit -qm s; cd ..; git add sub 2>&1; git commit -qm sub; cd sub; echo t > s; git commit -qam t",
			[]string{"1 not staged\nnot staged (modified)  sub (submodule)"}},
		"ignored":                {two + "echo '*.o' > .gitignore; echo x > x.o; echo y > y; echo y > .git/info/exclude", []string{"1 untracked\nuntracked  .gitignore"}},
		"modes off":              {two + "git config core.fileMode false; chmod +x a", []string{"nothing changed"}},
		"modes":                  {two + "chmod +x a", []string{"not staged (modified)  a"}},
		"line ends":              {"git config core.autocrlf true; printf 'a\\nb\\n' > a; git add a 2>&1; git commit -qm one; rm a; git checkout -q -- a; touch -d yesterday a", []string{"nothing changed"}},
		"line ends by attribute": {"echo '* text eol=crlf' > .gitattributes; printf 'a\\r\\nb\\r\\n' > a; git add .; git commit -qm one; touch -d yesterday a", []string{"nothing changed"}},
		"split index":            {two + "git update-index --split-index; echo c > a; echo n > n; git add n", []string{"1 staged, 1 not staged\nstaged (new)  n\nnot staged (modified)  a"}},
		"sha256":                 {"rm -rf .git; git init -q -b main --object-format=sha256 .; " + identity + two + "echo c > a", []string{"not staged (modified)  a"}},
		"shallow":                {two + "mv .git \"$OUT/full\"; git clone -q --depth 1 \"file://$OUT/full\" c; mv c/.git .; rm -r c", []string{"on branch main at "}},
		"filter": {two + "echo '*.bin filter=lfs' > .gitattributes; echo x > x.bin; git add .; git commit -qm f; echo y > x.bin",
			[]string{"not staged (modified)  x.bin", "[x.bin is kept through a filter (lfs), which is not run here: it may only seem changed]"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := gitSet(t, c.script)
			wantText(t, call(t, s, "git_status"), "", c.want...)
		})
	}
}

// oddNames are names that git writes in quotes, or that break rows.
var oddNames = map[string]string{
	"größe.txt": "größe.txt", "日本語": "日本語", "a -> b.txt": "a -> b.txt", "two\nlines": `"two\nlines"`, "esc\x1b[31m": `"esc\x1b[31m"`, "quote\"": `quote"`,
	"back\\slash": `back\slash`, "tab\t": `"tab\t"`, "\xff\xfe": `"\xff\xfe"`, "rtl\u202ename": `"rtl\u202ename"`, "bell\a\x01": `"bell\a\x01"`, " lead": " lead", "-dash": "-dash",
}

// Names come out readable: as they are, or quoted with escapes that are those of every other tool.
func TestGitShowsNames(t *testing.T) {
	s := gitSet(t, "")
	for name := range oddNames {
		put(t, s, name, "one\n")
	}
	r := call(t, s, "git_status")
	for _, shown := range oddNames {
		wantText(t, r, "", "untracked  "+shown)
	}
	bash(t, s, "git add .; git commit -qm one; for f in *; do echo two > \"$f\"; done; git mv -- größe.txt 'new\"'$'\\n'")
	r = call(t, s, "git_diff", "ref", "HEAD")
	wantText(t, r, "", "!\\303", "!\\033", "!\\377", "!\\342", "a/日本語", `"a/two\nlines"`, `"b/esc\x1b[31m"`, `b/\xff\xfe`, `a/rtl\u202ename`, `"b/bell\a\x01"`, `b/quote\"`, "a/a -> b.txt")
	wantText(t, call(t, s, "git_diff", "staged", true), "", "rename from größe.txt", `rename to "new\"\n"`)
	wantText(t, call(t, s, "git_status"), "", `staged (renamed)  größe.txt → "new\"\n"`)
	checkText(t, r, s.cfg.Caps.OutputChars)
	r = call(t, s, "git_commit", "message", "odd", "paths", []string{"."})
	for _, shown := range oddNames {
		if shown != "größe.txt" {
			wantText(t, r, "", "\n"+shown+"  +1 −1")
		}
	}
}

// A status of more entries than are shown says how many there are.
func TestGitStatusCounts(t *testing.T) {
	s := gitSet(t, "for i in $(seq 100 119); do echo > f$i; done; git add f10*", func(c *Config) { c.Caps.ListEntries = 12 })
	r := call(t, s, "git_status")
	wantText(t, r, "", "10 staged, 10 untracked", "untracked  f111\n[… showing 12 of 20 entries of the status, 8 left out; ask for less with path]")
	if c := r.Facts.Cuts; len(c) != 1 || c[0].Shown != 12 || c[0].Total != 20 {
		t.Errorf("facts: %+v", c)
	}
	wantText(t, call(t, s, "git_status", "path", "f115"), "", "1 untracked\nuntracked  f115", "!showing")
	s = gitSet(t, "for i in $(seq 100 111); do echo > f$i; done; git add f10*", func(c *Config) { c.Caps.ListEntries = 12 })
	if r := call(t, s, "git_status"); len(r.Facts.Cuts) > 0 || strings.Contains(r.Text, "showing") {
		t.Errorf("exactly as many as are shown: %+v\n%s", r.Facts.Cuts, r.Text)
	}
}

// The tools that only read leave the repository as it is, to the byte, and see every change all the same: also one that git has looked at before.
func TestGitReadingLeavesTheRepository(t *testing.T) {
	s := gitSet(t, "for i in $(seq 100); do echo $i > f$i; done; git add .; git commit -qm one; touch -d '3 days ago' f*")
	look := func() string {
		return bash(t, s, "find .git -printf '%p %s %T@\\n' | sort; find .git -type f | sort | xargs sha256sum")
	}
	before := look()
	for i := range 3 {
		wantText(t, call(t, s, "git_status"), "", "nothing changed")
		wantText(t, call(t, s, "git_diff"), "", "no differences")
		call(t, s, "git_log")
		name := fmt.Sprintf("f%d", i+1)
		put(t, s, name, "x\n") // as long as before
		wantText(t, call(t, s, "git_status"), "", "1 not staged\nnot staged (modified)  "+name)
		put(t, s, name, fmt.Sprintln(i+1))
	}
	if after := look(); after != before {
		t.Errorf("the repository changed:\n%s\n%s", before, after)
	}
	if left, _ := filepath.Glob(filepath.Join(s.cfg.Tree.Scratch, "git-index-*")); len(left) != 1 {
		t.Errorf("copies of the index: %v", left)
	}
	// A command may do with the copy what it likes: it is made anew.
	call(t, s, "run_command", "command", "rm ../scratch/git-index-1")
	wantText(t, call(t, s, "git_status"), "", "nothing changed")
	bash(t, s, "git rm -q --cached f7")
	wantText(t, call(t, s, "git_status"), "", "staged (deleted)  f7", "untracked  f7")
}
