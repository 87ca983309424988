package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// userGit runs the user's git in a folder.
func userGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func TestAProjectIsTheSameInEveryClone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	userGit(t, dir, "init", "-q", "-b", "main")
	commit := func(message string) { userGit(t, dir, "commit", "-q", "--allow-empty", "-m", message) }
	commit("first")
	root := "git " + userGit(t, dir, "rev-parse", "HEAD")
	commit("second")
	// Another history that is merged in (a subtree) is not where this one began.
	userGit(t, dir, "checkout", "-q", "--orphan", "other")
	commit("elsewhere")
	userGit(t, dir, "checkout", "-q", "main")
	userGit(t, dir, "merge", "-q", "--allow-unrelated-histories", "-m", "merged", "other")
	places := t.TempDir()
	clone, shallow, work, empty, plain := filepath.Join(places, "clone"), filepath.Join(places, "shallow"), filepath.Join(places, "work"), filepath.Join(places, "empty"), filepath.Join(places, "plain")
	userGit(t, places, "clone", "-q", dir, clone)
	userGit(t, places, "clone", "-q", "--depth", "1", "file://"+dir, shallow)
	userGit(t, dir, "worktree", "add", "-q", "--detach", work, "HEAD~1")
	for _, d := range []string{empty, plain} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	userGit(t, empty, "init", "-q")
	named := func(dir, given string) (string, error) {
		t.Helper()
		p, err := FindProject(dir)
		if err != nil {
			t.Fatal(err)
		}
		return p.Memories(t.Context(), given)
	}
	for place, want := range map[string]string{dir: root, filepath.Join(dir, "sub"): root, clone: root, work: root, shallow: "folder", empty: "folder", plain: "folder"} {
		if want == "folder" {
			real, err := filepath.EvalSymlinks(place)
			if err != nil {
				t.Fatal(err)
			}
			want = "folder " + hostname() + ":" + real
		}
		if got, err := named(place, ""); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", place, got, err, want)
		}
	}
	if got, err := named(shallow, "my project"); err != nil || got != "my project" {
		t.Errorf("a name of its own: %q, %v", got, err)
	}
	for _, bad := range []string{"two\nlines", " x", strings.Repeat("x", 201), "\x1b[31mred"} {
		if got, err := named(plain, bad); err == nil {
			t.Errorf("%q was taken as %q", bad, got)
		}
	}
	if err := os.WriteFile(filepath.Join(empty, ".git", "HEAD"), []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := named(empty, ""); err == nil || !strings.Contains(err.Error(), "find the first commit of") {
		t.Errorf("broken: %q, %v", got, err)
	}
}
