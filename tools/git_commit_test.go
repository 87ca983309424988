package tools

import (
	"strings"
	"testing"
)

func TestGitCommitOfWhatIsStaged(t *testing.T) {
	s := gitSet(t, "echo a > a; echo b > b; git add a")
	r := call(t, s, "git_commit", "message", "one\n\nwith a body\n")
	wantText(t, r, "", "committed ", " on branch main: one\n1 file, +1 −0\na  +1 −0", "!identity", "!hook")
	id := bash(t, s, "git rev-parse HEAD")
	wantText(t, r, "", id)
	if got := bash(t, s, "git log --format='%an <%ae> %cn %s|%b'; git status --porcelain"); got != "Tester <t@example.invalid> Tester one|with a body\n\n?? b" {
		t.Errorf("the commit is %q", got)
	}
	if f := r.Facts.Files; len(f) != 1 || f[0].Path != "a" || f[0].Added != 1 {
		t.Errorf("facts: %+v", r.Facts)
	}
	wantText(t, call(t, s, "git_commit", "message", "two"), Input, "nothing is staged, so there is nothing to commit (1 untracked); name the files to commit in paths")
	bash(t, s, "echo c > a")
	wantText(t, call(t, s, "git_commit", "message", "two"), Input, "(1 not staged, 1 untracked)")
	for _, blank := range []string{" ", "\n\t\n"} {
		wantText(t, call(t, s, "git_commit", "message", blank), Input, "the message is blank; say what changes and why")
	}
	wantText(t, call(t, s, "git_commit", "message", "a\x00b"), Input, "NUL")
	if got := bash(t, s, "git rev-list --count HEAD; git reflog --format=%gs"); got != "1\ncommit (initial): one" {
		t.Errorf("afterwards %q", got)
	}
}

// Exactly the named files are committed: what else is staged stays staged, what else changed stays changed.
func TestGitCommitOfPaths(t *testing.T) {
	s := gitSet(t, `for f in a b c d e; do echo $f > $f; done; git add .; git commit -qm one
		echo 2 > a; echo 2 > b; echo 2 > c; git add b c; echo 3 > c; rm d; mkdir n; echo n > n/n; echo x > x`)
	r := call(t, s, "git_commit", "message", "some", "paths", []string{"a", "c", "d", "n"})
	wantText(t, r, "", "4 files, +3 −3\na  +1 −1\nc  +1 −1\nd  +0 −1\nn/n  +1 −0")
	if got := bash(t, s, "git show --format= --name-status HEAD; git show HEAD:c; git status --porcelain"); got != "M\ta\nM\tc\nD\td\nA\tn/n\n3\nM  b\n?? x" {
		t.Errorf("the commit is %q", got)
	}
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"e"}), Input, "nothing changed in e since the last commit")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"nowhere"}), Input, "did not match any files", "git_status lists what changed")
	bash(t, s, "echo '*.o' > .git/info/exclude; echo o > o.o")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"o.o"}), Input, "ignored", "leave it out")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"../other"}), Permission, "outside the workspace")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"x", "e", "nowhere"}), Input, "did not match")
	if got := bash(t, s, "git rev-list --count HEAD; git status --porcelain"); got != "2\nM  b\n?? x" {
		t.Errorf("refusals changed something: %q", got)
	}
	wantText(t, call(t, s, "git_commit", "message", "all", "paths", []string{"."}), "", "2 files", "b  +1 −1", "x  +1 −0")
	if got := bash(t, s, "git status --porcelain; git fsck 2>&1"); got != "" {
		t.Errorf("afterwards %q", got)
	}
}

func TestGitCommitInSpecialStates(t *testing.T) {
	conflict := "echo a > a; git add a; git commit -qm one; git checkout -qb side; echo s > a; git commit -qam side; git checkout -q main; echo m > a; git commit -qam m; "
	s := gitSet(t, conflict+"git merge side || true; echo x > x; echo y > y; git add y")
	wantText(t, call(t, s, "git_commit", "message", "m"), Conflict, "1 file in conflict: a; mend them, then name them in paths")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"x"}), Conflict, "1 file in conflict: a")
	if got := bash(t, s, "git status --porcelain"); got != "UU a\nA  y\n?? x" {
		t.Errorf("refusals changed something: %q", got)
	}
	put(t, s, "a", "both\n")
	wantText(t, call(t, s, "git_commit", "message", "merged", "paths", []string{"a"}), "", "committed ", "2 files, +2 −1\na  +1 −1\ny  +1 −0")
	if got := bash(t, s, "git log -1 --format='%s %p' | wc -w; ls .git | grep MERGE || true; git status --porcelain; git reflog -1 --format=%gs"); got != "3\n?? x\ncommit (merge): merged" {
		t.Errorf("the merge: %q", got)
	}
	s = gitSet(t, conflict+"git merge side || true; echo both > a; git add a")
	wantText(t, call(t, s, "git_commit", "message", "merged"), "", "a  +1 −1")
	s = gitSet(t, conflict+"git merge -q -s ours --no-commit side")
	wantText(t, call(t, s, "git_commit", "message", "ours"), "", "committed ", "0 files")
	s = gitSet(t, conflict+"git -c user.name=Other commit -q --amend --reset-author --no-edit; git checkout -q side; git cherry-pick main || true; echo p > a; git add a")
	wantText(t, call(t, s, "git_commit", "message", "picked"), "", "on branch side: picked")
	if got := bash(t, s, "git log -1 --format='%an %cn'; ls .git | grep CHERRY || true"); got != "Other Tester" {
		t.Errorf("the pick: %q", got)
	}
	s = gitSet(t, conflict+"git checkout -q HEAD~1; echo d > d")
	wantText(t, call(t, s, "git_commit", "message", "detached", "paths", []string{"d"}), "", "on a detached HEAD: no branch keeps it: detached")
	if got := bash(t, s, "git log -1 --format=%s; git log -1 --format=%s main; git symbolic-ref -q HEAD || echo none"); got != "detached\nm\nnone" {
		t.Errorf("detached: %q", got)
	}
	s = gitSet(t, conflict+"git checkout -q side; git rebase main || true; echo r > a; git add a")
	wantText(t, call(t, s, "git_commit", "message", "on the way"), "", "on a detached HEAD")
	if got := bash(t, s, "git -c core.editor=true rebase --continue >/dev/null 2>&1; git log --format=%s"); got != "on the way\nm\none" {
		t.Errorf("the rebase: %q", got)
	}
	s = gitSet(t, "echo a > a; git add a; git commit -qm one; git pack-refs --all; git gc -q; echo b > a; git config core.logAllRefUpdates false; rm -r .git/logs")
	wantText(t, call(t, s, "git_commit", "message", "packed", "paths", []string{"a"}), "", "a  +1 −1")
	if got := bash(t, s, "git log --format=%s; git fsck; ls .git | grep logs || true"); got != "packed\none" {
		t.Errorf("packed: %q", got)
	}
	s = gitSet(t, "mkdir in out; echo i > in/i; echo o > out/o; git add .; git commit -qm one; git sparse-checkout set in; echo j > in/i; echo n > n")
	wantText(t, call(t, s, "git_commit", "message", "sparse", "paths", []string{"."}), "", "2 files", "!out")
	if got := bash(t, s, "git ls-tree -r --name-only HEAD; git status --porcelain"); got != "in/i\nn\nout/o" {
		t.Errorf("sparse: %q", got)
	}
}

// Without an identity a fixed one is used, and said; parts that are configured are kept.
func TestGitCommitWithoutIdentity(t *testing.T) {
	s := newSet(t)
	bash(t, s, "git init -q -b main .; git config user.useConfigOnly true; echo a > a; git add a")
	wantText(t, call(t, s, "git_commit", "message", "m"), "", "[no identity is configured: committed as muster <muster@localhost>]")
	bash(t, s, "git config user.name 'Jo \"J\" \\\\ Ünal'; git config author.email 'jo@example.invalid'; echo b > b; git add b")
	wantText(t, call(t, s, "git_commit", "message", "m"), "", "no identity is configured")
	bash(t, s, "git config user.email 'a;b@example.invalid'; echo c > c; git add c")
	wantText(t, call(t, s, "git_commit", "message", "m"), "", "!identity")
	want := "Jo \"J\" \\\\ Ünal <jo@example.invalid> Jo \"J\" \\\\ Ünal <a;b@example.invalid>\nJo \"J\" \\\\ Ünal <jo@example.invalid> Jo \"J\" \\\\ Ünal <muster@localhost>\nmuster <muster@localhost> muster <muster@localhost>"
	if got := bash(t, s, "git log --format='%an <%ae> %cn <%ce>'"); got != want {
		t.Errorf("the commits are by %q", got)
	}
}

// Nothing is committed past a hook that could refuse; of others it is said that they did not run.
func TestGitCommitAndHooks(t *testing.T) {
	hook := func(name string) string {
		return "printf '#!/bin/sh\\n# checks-7 \\033[1m\\nexit 1\\n' > .git/hooks/" + name + "; chmod +x .git/hooks/" + name + "; echo a > a; git add a"
	}
	for _, name := range []string{"pre-commit", "commit-msg"} {
		s := gitSet(t, hook(name))
		wantText(t, call(t, s, "git_commit", "message", "m"), Permanent, "nothing was committed: the hook "+name, "and leave the commit to the user", ".git/hooks/"+name, "\n  | # checks-7 ␛[1m\n  | exit 1")
		s.cfg.Tree.InPlace = false
		wantText(t, call(t, s, "git_commit", "message", "m"), Permanent, "run_command: git commit, which runs it")
		if r := call(t, s, "run_command", "command", "git commit -m m"); r.OK {
			t.Errorf("%s does not refuse: %s", name, r.Text)
		}
		bash(t, s, "chmod -x .git/hooks/"+name)
		wantText(t, call(t, s, "git_commit", "message", "m"), "", "committed ", "!hook")
	}
	for _, name := range []string{"post-commit", "prepare-commit-msg"} {
		s := gitSet(t, hook(name))
		wantText(t, call(t, s, "git_commit", "message", "m"), "", "committed ", "[not run: the repository's hooks "+name+"]")
	}
	s := gitSet(t, "git config core.hooksPath hooks; mkdir hooks; printf '\\0binary' > hooks/pre-commit; chmod +x hooks/pre-commit; echo a > a; git add a")
	wantText(t, call(t, s, "git_commit", "message", "m"), Permanent, "hooks/pre-commit", "… (7 bytes in all)")
}

// A file that a filter keeps elsewhere is not stored as it lies there.
func TestGitCommitLeavesFiltersAlone(t *testing.T) {
	s := gitSet(t, "echo '*.bin filter=lfs' > .gitattributes; git add .; git commit -qm one; echo big > x.bin; echo y > y")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"."}), Permanent, "x.bin is kept through a filter (lfs of .gitattributes)", "leave it out")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"y"}), "", "y  +1 −0")
	bash(t, s, "rm x.bin; echo '* -filter' > .git/info/attributes; echo big > x.bin")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"x.bin"}), "", "x.bin  +1 −0")
}

func TestGitCommitOfManyFiles(t *testing.T) {
	s := gitSet(t, "for i in $(seq 100 149); do echo > f$i; done", func(c *Config) { c.Caps.ListEntries = 20 })
	r := call(t, s, "git_commit", "message", "m", "paths", []string{"."})
	wantText(t, r, "", "50 files, +50 −0", "[… showing 20 of 50 files of the commit, 30 left out; ")
	if len(r.Facts.Files) != 20 || len(r.Facts.Cuts) != 1 {
		t.Errorf("facts: %d files, %+v", len(r.Facts.Files), r.Facts.Cuts)
	}
	if strings.TrimSpace(bash(t, s, "git ls-files | wc -l")) != "50" {
		t.Error("not all were committed")
	}
}

// A tree that is shared, or that a job only reads, has no commits made in it.
func TestGitCommitInATreeThatIsOnlyRead(t *testing.T) {
	s := gitSet(t, "echo a > a; git add a; git commit -qm one; echo b > a", func(c *Config) {
		c.Tree = newTree(t)
		c.Tree.ReadOnly = true
	})
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"a"}), Permission, "this job only reads")
	wantText(t, call(t, s, "git_diff"), "", "-a\n+b")
	r := call(t, s, "run_command", "command", "touch .git/x a")
	if r.OK {
		t.Errorf("a command writes in it: %s", r.Text)
	}
}
