package git_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/tools/git"
	"muster/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// plain runs git as a user does.
func plain(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// real is a new folder without symlinks.
func real(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func config(t *testing.T, text string) git.Config {
	t.Helper()
	c, err := git.ParseConfig(t.Context(), git.Runner{}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A view takes over what is data, to the byte, and nothing else: not one variable that is not on the list.
func TestViewTakesOverDataAlone(t *testing.T) {
	dir := real(t)
	plain(t, dir, "init", "-q", "src")
	evil := filepath.Join(dir, "evil")
	if err := os.WriteFile(evil, []byte("[core]\n\tfsmonitor = touch pwned\n[user]\n\tname = Evil\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := `[core]
	fileMode = false
	autoCRLF = input
	worktree = /elsewhere
	hooksPath = /elsewhere
	fsmonitor = touch pwned
	pager = touch pwned
	bare
[include]
	path = ` + evil + `
[user]
	name = "Jo \"J\" \\ Ünal; # x"
	email = jo@example.invalid
	signingKey = x
[branch "odd \"name\" \\ .x"]
	remote = origin
	merge = refs/heads/main
	pushRemote = x
[remote "origin"]
	url = ext::touch pwned
	fetch = +refs/heads/*:refs/remotes/origin/*
	uploadpack = touch pwned
	promisor = true
[filter "core"]
	clean = touch pwned
[core "x"]
	filemode = true
[user "x"]
	name = no
[extensions]
	worktreeConfig = true
	partialClone = origin
[alias]
	status = !touch pwned
`
	view := filepath.Join(dir, "view")
	if err := git.NewView(view, git.Source{Common: filepath.Join(dir, "src", ".git"), Config: config(t, text), Attributes: []byte("* -text\n"), Exclude: []byte("x\n")}); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(plain(t, dir, "config", "--file", filepath.Join(view, "config"), "--list"), "\n")
	want := []string{
		"user.name=muster", "user.email=muster@localhost", "core.filemode=false", "core.autocrlf=input", `user.name=Jo "J" \ Ünal; # x`, "user.email=jo@example.invalid",
		`branch.odd "name" \ .x.remote=origin`, `branch.odd "name" \ .x.merge=refs/heads/main`, "remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the view says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for file, want := range map[string]string{"info/attributes": "* -text\n", "info/exclude": "x\n"} {
		if b, err := os.ReadFile(filepath.Join(view, file)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", file, b, err)
		}
	}
}

func TestFormats(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "[core]\nrepositoryformatversion = 0\n[extensions]\nmystery = x\n": "",
		"[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\nnoop = 1\npreciousObjects\nrefStorage = files\n": "",
		"[core]\nrepositoryformatversion = 1\n[extensions]\nmystery = x\n":                                                          `extension "mystery"`,
		"[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = reftable\n":                                                `stored as "reftable"`,
		"[core]\nrepositoryformatversion = 2\n":                                                                                     `version "2"`,
	} {
		err := git.NewView(filepath.Join(real(t), "view"), git.Source{Config: config(t, text)})
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, git.ErrFormat) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What git cannot read it says; what is larger than a configuration is not handed to it.
func TestConfigThatIsNone(t *testing.T) {
	for text, want := range map[string]string{"[core": "bad config line", "x\x00": "bad config line", strings.Repeat("#", git.FileBytes+1): "more than 1048576"} {
		if _, err := git.ParseConfig(t.Context(), git.Runner{}, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
	c := config(t, "[a]\nb = one\nb = two\nc\nd = off\n")
	if c.Get("a.b") != "two" || !c.True("a.c") || c.True("a.d") || c.True("a.x") || !c.Anonymous() {
		t.Errorf("%+v", c)
	}
}

// git works on a repository through a view as it does without, down to what it writes, and cannot write to the view.
func TestViewIsARepository(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		dir := real(t)
		src := filepath.Join(dir, "src")
		plain(t, dir, "init", "-q", "-b", "main", "--object-format="+format, "src")
		if err := os.WriteFile(filepath.Join(src, "a"), []byte("a\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(src, ".git", "config"))
		if err != nil {
			t.Fatal(err)
		}
		view := filepath.Join(dir, "view")
		if err := git.NewView(view, git.Source{Common: filepath.Join(src, ".git"), Config: config(t, string(raw))}); err != nil {
			t.Fatal(err)
		}
		at := git.Repo{Dir: filepath.Join(src, ".git"), View: view, Objects: filepath.Join(src, ".git", "objects"), WorkTree: src}
		for _, args := range [][]string{{"add", "a"}, {"commit", "-q", "-m", "one"}, {"pack-refs", "--all"}, {"commit", "-q", "--allow-empty", "-m", "two"}} {
			if err := (git.Runner{}).Run(t.Context(), at, nil, nil, args...); err != nil {
				t.Fatal(err)
			}
		}
		if got := plain(t, src, "log", "--format=%s %an"); got != "two muster\none muster" {
			t.Errorf("%s: the log is %q", format, got)
		}
		if got := plain(t, src, "reflog", "--format=%gs"); got != "commit: two\ncommit (initial): one" {
			t.Errorf("%s: the reflog is %q", format, got)
		}
		plain(t, src, "fsck", "--strict")
		left, err := os.ReadDir(view)
		if err != nil || len(left) != 6 {
			t.Errorf("%s: the view holds %v, %v", format, left, err)
		}
	}
}

func TestLinkedTo(t *testing.T) {
	dir := real(t)
	repo, tree := filepath.Join(dir, "repo"), filepath.Join(dir, "tree")
	plain(t, dir, "init", "-q", repo)
	plain(t, repo, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x")
	plain(t, repo, "worktree", "add", "-q", tree)
	l, ok := git.LinkedTo(tree)
	if !ok || l.Common != filepath.Join(repo, ".git") || l.Dir != filepath.Join(repo, ".git", "worktrees", "tree") {
		t.Errorf("%+v, %v", l, ok)
	}
	if err := os.Symlink(tree, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if other, ok := git.LinkedTo(filepath.Join(dir, "link")); !ok || other != l {
		t.Errorf("by a symlink: %+v, %v", other, ok)
	}
	pointer, err := os.ReadFile(filepath.Join(tree, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	// Whoever copies the pointer has no work tree of that repository.
	for name, text := range map[string]string{
		"copied": string(pointer), "plain": "gitdir: " + filepath.Join(repo, ".git"), "relative": "gitdir: ../repo/.git/worktrees/tree", "junk": "gitdir: ", "none": "x",
		"long": "gitdir: " + strings.Repeat("x/", 8<<10), "nul": "gitdir: /\x00", "device": "gitdir: /dev/tty",
	} {
		other := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(other, 0o755), os.WriteFile(filepath.Join(other, ".git"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		if l, ok := git.LinkedTo(other); ok {
			t.Errorf("%s: %+v is believed", name, l)
		}
	}
	// A repository that says it shares another's.
	if err := os.WriteFile(filepath.Join(l.Dir, "commondir"), []byte("../../../../other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if l, ok := git.LinkedTo(tree); ok {
		t.Errorf("with another common folder: %+v is believed", l)
	}
}

func TestRunnerEndsWithItsContext(t *testing.T) {
	dir := real(t)
	plain(t, dir, "init", "-q", ".")
	box, err := sandbox.Open(sandbox.Policy{Writable: []string{dir}})
	if err != nil {
		t.Skip(err)
	}
	defer box.Close()
	for name, run := range map[string]git.Runner{"bare": {}, "box": {Start: box.Start}} {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		in, feed, err := os.Pipe() // a file, whose end git alone waits for
		if err != nil {
			t.Fatal(err)
		}
		if _, err := feed.WriteString("HEAD\n"); err != nil {
			t.Fatal(err)
		}
		answered := &git.Records{End: '\n', Fn: func(string) error { cancel(why); return nil }}
		at := git.Repo{Dir: filepath.Join(dir, ".git")}
		if err := run.Run(ctx, at, in, answered, "cat-file", "--batch-check"); !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
		in.Close()
		feed.Close()
	}
}

func TestRunnerTellsGitsWords(t *testing.T) {
	err := git.Runner{}.Run(t.Context(), git.Repo{Dir: real(t)}, nil, nil, "log")
	var said *git.Error
	if !errors.As(err, &said) || said.Op != "log" || said.Code != 128 || !strings.Contains(said.Says, "not a git repository") {
		t.Errorf("%#v", err)
	}
	if err := (git.Runner{Program: "no-such-git"}).Run(t.Context(), git.Repo{}, nil, nil, "log"); !errors.Is(err, git.ErrNotInstalled) {
		t.Errorf("without git: %v", err)
	}
	full := errors.New("full")
	if err := (git.Runner{}).Run(t.Context(), git.Repo{}, nil, failing{full}, "version"); !errors.Is(err, full) {
		t.Errorf("a writer that fails: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestRecords(t *testing.T) {
	var got []string
	var lost []int64
	r := &git.Records{Most: 4}
	r.Fn = func(s string) error {
		got, lost = append(got, s), append(lost, r.Lost)
		return nil
	}
	for _, p := range []string{"a\x00b", "c\x00\x00long", "er\x00tail"} {
		if n, err := r.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if !slices.Equal(got, []string{"a", "bc", "", "long"}) || !slices.Equal(lost, []int64{0, 0, 0, 2}) {
		t.Errorf("%q, %v", got, lost)
	}
}

// FuzzHeader: what git quotes comes out as Go quotes it, and nothing else changes but what cannot be seen.
func FuzzHeader(f *testing.F) {
	for _, s := range []string{`diff --git "a/x\303\244" b/y`, `--- "a/two\nlines"`, `"`, `"\4"`, "a\x1b\xff\u202e", `Binary files "a/\"" and b/ä differ`, `"a\\b"c"d\tq"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := git.Header(s)
		for i, r := range got {
			if r < ' ' && r != '\t' || r == 0x7f || r == 0xfffd && !strings.Contains(s, "\ufffd") {
				t.Errorf("%q: %q at %d", s, got, i)
			}
		}
		if !bytes.ContainsAny([]byte(s), "\"") && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}

// What git really writes for a name is read back to the same name.
func TestHeaderOfRealNames(t *testing.T) {
	dir := real(t)
	plain(t, dir, "init", "-q", ".")
	for _, name := range []string{"ä", "two\nlines", "\x01\x7f\x1b", "q\"u", `b\s`, "tab\t", "\a\b\f\v\r", "\xff"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		line := plain(t, dir, "-c", "core.quotePath=false", "ls-files", "-o")
		got := git.Header(line)
		if strings.Contains(got, `\0`) || strings.Contains(got, `\3`) || strings.Contains(got, `\1`) {
			t.Errorf("%q: octal in %s", name, got)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
