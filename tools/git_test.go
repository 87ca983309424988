package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitSet is a set on a workspace that a script has prepared, with the script's own configuration of git.
func gitSet(t testing.TB, script string, change ...func(*Config)) *Set {
	t.Helper()
	s := newSet(t, change...)
	bash(t, s, "git init -q -b main .\n"+identity+script)
	return s
}

// identity is that of the commits that tests make by themselves.
const identity = "git config user.name Tester; git config user.email t@example.invalid; git config commit.gpgsign false\n"

// bash runs a script in the workspace, outside of the sandbox, and returns what it prints.
func bash(t testing.TB, s *Set, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = s.cfg.Tree.Dir
	cmd.Env = append(os.Environ(), "HOME="+s.cfg.Tree.Scratch, "XDG_CONFIG_HOME="+s.cfg.Tree.Scratch, "GIT_CONFIG_NOSYSTEM=1", "OUT="+filepath.Dir(s.cfg.Tree.Dir))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// wantText checks a reply: that it is well or of a class, and what its text holds and (with a ! in front) does not.
func wantText(t testing.TB, r Reply, class ErrorClass, texts ...string) {
	t.Helper()
	if r.Class != class || r.OK != (class == "") {
		t.Errorf("%s: ok=%v class=%q, want %q\n%s", r.Tool, r.OK, r.Class, class, r.Text)
	}
	for _, want := range texts {
		if no, ok := strings.CutPrefix(want, "!"); ok {
			if strings.Contains(r.Text, no) {
				t.Errorf("%s: the text holds %q\n%s", r.Tool, no, r.Text)
			}
		} else if !strings.Contains(r.Text, want) {
			t.Errorf("%s: the text lacks %q\n%s", r.Tool, want, r.Text)
		}
	}
}

// Where there is no repository, or none that is one, each tool says so and what to do.
func TestGitWithoutARepository(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		class  ErrorClass
		want   string
	}{
		"none":            {"", Input, "in no git repository (a folder above it does not count)"},
		"dot git folder":  {"mkdir .git", Permanent, "not a git repository"},
		"dot git FIFO":    {"mkfifo .git", Permanent, ".git is neither a repository nor a pointer to one"},
		"pointer to junk": {"echo 'gitdir: nowhere' > .git", Permanent, "not a git repository"},
		"no pointer":      {"echo hello > .git", Permanent, ".git names no repository"},
		"pointer outside": {"git init -q \"$OUT/other\"; echo \"gitdir: $OUT/other/.git\" > .git", Permission, "outside the workspace, and it does not name this folder"},
		"link outside":    {"git init -q \"$OUT/other\"; ln -s \"$OUT/other/.git\" .git", Permission, "outside the workspace"},
		"shares outside":  {"git init -q \"$OUT/other\"; git init -q .; echo \"$OUT/other/.git\" > .git/commondir", Permission, "outside the workspace"},
		"bad config":      {"git init -q .; echo '[core' > .git/config", Permanent, "bad config line 1"},
		"new format":      {"git init -q .; git config core.repositoryFormatVersion 1; git config extensions.mystery x", Permanent, `extension "mystery"`},
		"no head":         {"git init -q .; rm .git/HEAD", Permanent, "not a git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSet(t)
			bash(t, s, c.script)
			for _, tool := range []string{"git_status", "git_diff", "git_log"} {
				wantText(t, call(t, s, tool), c.class, c.want)
			}
			wantText(t, call(t, s, "git_commit", "message", "m"), c.class, c.want)
		})
	}
}

func TestGitNamesWhatIsWrongWithARepository(t *testing.T) {
	s := gitSet(t, "echo a > a; git add a; git commit -qm one; echo b > a; git commit -qam two; rm -rf .git/objects/??")
	wantText(t, call(t, s, "git_log"), Permanent, "git log: ", "fatal: ", "say so in your answer, or go on without")
	s.cfg.Tree.InPlace = false
	wantText(t, call(t, s, "git_log"), Permanent, "look into it with run_command, or go on without")
	s = gitSet(t, "echo a > a; git add a; git commit -qm one; echo rubbish > .git/index")
	wantText(t, call(t, s, "git_status"), Permanent, "git status: ", "index")
	s = gitSet(t, "echo a > a; git add a; touch .git/index.lock")
	wantText(t, call(t, s, "git_commit", "message", "m"), Transient, "index.lock", "try again")
	wantText(t, call(t, s, "git_commit", "message", "m", "paths", []string{"a"}), Transient, "index.lock", "try again")
	wantText(t, call(t, s, "git_status"), "", "staged (new)  a")
}

// The repository of a folder counts, not only that of the root; and none above the root.
func TestGitFindsTheNearestRepository(t *testing.T) {
	s := newSet(t)
	bash(t, s, `git init -q -b outer "$OUT"; mkdir -p a/b plain; cd a; git init -q -b inner .; echo x > b/f; ln -s b link; git -C .. init -q --bare -b bare bare.git`)
	wantText(t, call(t, s, "git_status"), Input, "in no git repository")
	wantText(t, call(t, s, "git_status", "path", "plain"), Input, "in no git repository")
	for _, path := range []string{"a", "a/b", "a/b/f", "a/link", filepath.Join(s.cfg.Tree.Dir, "a")} {
		wantText(t, call(t, s, "git_status", "path", path), "", "on branch inner, no commits yet", "a/b")
	}
	wantText(t, call(t, s, "git_status", "path", "a/gone"), "", "nothing changed in a/gone")
	wantText(t, call(t, s, "git_status", "path", "../elsewhere"), Permission, "outside the workspace")
	wantText(t, call(t, s, "git_status", "path", "a/.git/refs"), "", "nothing changed in a/.git/refs")
	wantText(t, call(t, s, "git_status", "path", s.cfg.Tree.Scratch), Input, "scratch")
	r := call(t, s, "git_commit", "message", "m", "paths", []string{"a/b"})
	wantText(t, r, "", "a/b/f  +1 −0")
	if len(r.Facts.Files) != 1 || r.Facts.Files[0].Path != "a/b/f" || r.Facts.Files[0].Added != 1 {
		t.Errorf("facts: %+v", r.Facts.Files)
	}
	wantText(t, call(t, s, "git_diff", "path", "a/b/f", "ref", "HEAD"), "", "no differences in a/b/f")
	wantText(t, call(t, s, "git_log", "path", "bare.git"), "", "no commits yet")
}

func TestGitInABareRepository(t *testing.T) {
	s := newSet(t)
	bash(t, s, `git init -q -b main "$OUT/w"; cd "$OUT/w"; `+identity+`
		echo a > a; git add a; git commit -qm one; echo b > a; git commit -qam two; git clone -q --bare . "$OLDPWD"`)
	wantText(t, call(t, s, "git_log"), "", "the log: 2 commits", "two", "one")
	wantText(t, call(t, s, "git_log", "count", 1), "", "1 file, +1 −1")
	wantText(t, call(t, s, "git_diff", "ref", "HEAD~1..HEAD"), "", "-a\n+b")
	for _, r := range []Reply{call(t, s, "git_status"), call(t, s, "git_diff"), call(t, s, "git_diff", "ref", "HEAD~1"), call(t, s, "git_commit", "message", "m")} {
		wantText(t, r, Input, "is a bare repository, which has no files; git_log works")
	}
}

// A linked work tree's repository is outside. It is believed where it names the tree in return; commands may read it, git_commit alone writes to it.
func TestGitInALinkedWorkTree(t *testing.T) {
	s := newSet(t)
	dir := s.cfg.Tree.Dir
	bash(t, s, `git init -q -b main "$OUT/repo"; cd "$OUT/repo"; `+identity+`
		echo a > a; git add a; git commit -qm one; git worktree add -q -b side "$OUT/tree"; cp -a "$OUT/tree/." "`+dir+`/"; rm -r "$OUT/tree"; git worktree repair "`+dir+`" 2>/dev/null; echo b > "`+dir+`/a"`)
	wantText(t, call(t, s, "git_status"), "", "on branch side", "not staged (modified)  a")
	wantText(t, call(t, s, "git_diff"), "", "-a\n+b")
	wantText(t, call(t, s, "git_log"), "", "one (HEAD -> side, main)")
	look := func() string { return bash(t, s, `cd "$OUT/repo"; find .git -type f | sort | xargs sha256sum`) }
	before := look()
	call(t, s, "run_command", "command", "git commit -qam x; echo x > $(git rev-parse --git-common-dir)/config; rm .git; echo x > .git")
	if after := look(); after != before {
		t.Errorf("a command changed the repository outside:\n%s\n%s", before, after)
	}
	wantText(t, call(t, s, "git_commit", "message", "two", "paths", []string{"a"}), "", "on branch side: two", "a  +1 −1")
	if got := bash(t, s, "git log --format=%s; git status --porcelain; git -C \"$OUT/repo\" log --format=%s; git fsck"); got != "two\none\none" {
		t.Errorf("afterwards: %q", got)
	}
}

// A linked work tree within the workspace is as good as any.
func TestGitInALinkedWorkTreeInside(t *testing.T) {
	s := gitSet(t, `echo a > a; git add a; git commit -qm one; git worktree add -q -b side tree; echo b > tree/a`)
	wantText(t, call(t, s, "git_status", "path", "tree"), "", "on branch side", "not staged (modified)  tree/a")
	wantText(t, call(t, s, "git_commit", "message", "in the tree", "paths", []string{"tree/a"}), "", "on branch side", "tree/a  +1 −1")
	if got := bash(t, s, "git log --format=%s side; git log --format=%s main"); got != "in the tree\none\none" {
		t.Errorf("the logs are %q", got)
	}
}

func TestGitToolsAreOfferedWhereTheyWork(t *testing.T) {
	offered := func(s *Set) (n int) {
		for _, tool := range s.Tools() {
			if strings.HasPrefix(tool.Name, "git_") {
				n++
			}
		}
		return n
	}
	if n := offered(newSet(t)); n != 4 {
		t.Errorf("%d git tools are offered", n)
	}
	if n := offered(newSet(t, func(c *Config) { c.Mode = "plan" })); n != 3 {
		t.Errorf("%d git tools are offered in mode plan", n)
	}
	s := newSet(t)
	s.folders = []string{t.TempDir()}
	if n := offered(s); n != 0 {
		t.Errorf("%d git tools are offered without git", n)
	}
	wantText(t, call(t, s, "git_status"), Permanent, "this machine has no git where commands can see it")
}

// What git_commit asks, and where it is not there.
func TestGitCommitAsks(t *testing.T) {
	for _, mode := range []string{"default", "accept-edits"} {
		s := gitSet(t, "echo a > a; git add a", func(c *Config) { c.Mode = mode })
		wantText(t, call(t, s, "git_commit", "message", "m"), "", "denied: git_commit needs an approval")
	}
	for _, mode := range []string{"plan", "debug"} {
		s := gitSet(t, "echo a > a; git add a", func(c *Config) { c.Mode = mode })
		wantText(t, call(t, s, "git_commit", "message", "m"), Permission, "git_commit is not allowed in mode "+mode)
		wantText(t, call(t, s, "git_status"), "", "staged (new)  a")
	}
}
