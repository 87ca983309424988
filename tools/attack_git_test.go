package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gitVector is a way to have git run a program. plant puts it into a repository with a commit and changes; $FIRE is a shell command that leaves
// a mark, $W the workspace. git is what plain git does to set it off.
type gitVector struct {
	name, plant, git string
}

// gitVectors are the ways that are known. Each is set off once by plain git, in the same sandbox: else its silence would prove nothing.
var gitVectors = []gitVector{
	{"hook pre-commit", hookScript("pre-commit"), "git commit --allow-empty -m x"},
	{"hook commit-msg", hookScript("commit-msg"), "git commit --allow-empty -m x"},
	{"hook prepare-commit-msg", hookScript("prepare-commit-msg"), "git commit --allow-empty -m x"},
	{"hook post-commit", hookScript("post-commit"), "git commit --allow-empty -m x"},
	{"hook reference-transaction", hookScript("reference-transaction"), "git commit --allow-empty -m x"},
	{"hook post-index-change", hookScript("post-index-change"), "git add a.c"},
	{"hook pre-auto-gc", hookScript("pre-auto-gc") + "git config gc.auto 1; mkdir -p .git/objects/17; " +
		"for i in 1 2 3; do echo > .git/objects/17/000000000000000000000000000000000$i$i$i$i$i; done", "git gc --auto"},
	{"hooks path", "mkdir hooks; " + fireScript("hooks/post-commit") + "git config core.hooksPath hooks", "git commit --allow-empty -m x"},
	{"fsmonitor", `git config core.fsmonitor "$FIRE; false"`, "git status"},
	{"filter clean", `echo '*.c filter=x' > .gitattributes; git config filter.x.clean "$FIRE; cat"; git config filter.x.required true`, "git add a.c"},
	{"filter process", `echo '*.c filter=x' > .gitattributes; git config filter.x.process "$FIRE"`, "git add a.c"},
	{"filter smudge", `echo '*.c filter=x' > .gitattributes; git config filter.x.smudge "$FIRE; cat"`, "git checkout -- a.c"},
	{"filter by info/attributes", `echo '*.c filter=x' > .git/info/attributes; git config filter.x.clean "$FIRE; cat"`, "git add a.c"},
	{"filter by core.attributesFile", `echo '*.c filter=x' > attr; git config core.attributesFile attr; git config filter.x.clean "$FIRE; cat"`, "git add a.c"},
	{"filter by macro", `printf '[attr]m filter=x diff=x\n*.c m\n' > .gitattributes; git config filter.x.clean "$FIRE; cat"`, "git add a.c"},
	{"textconv", `echo '*.c diff=x' > .gitattributes; git config diff.x.textconv "$FIRE; cat"`, "git diff"},
	{"textconv in the log", `echo '*.c diff=x' > .gitattributes; git config diff.x.textconv "$FIRE; cat"`, "git log -p"},
	{"diff driver", `echo '*.c diff=x' > .gitattributes; git config diff.x.command "$FIRE"`, "git diff"},
	{"external diff", `git config diff.external "$FIRE"`, "git diff"},
	{"merge driver", `echo '*.c merge=x' > .git/info/attributes; git config merge.x.driver "$FIRE; false"
		git checkout -q -- .; git checkout -qb side HEAD~1; echo side > a.c; git commit -qam side; git checkout -q main; echo more >> a.c`, "git checkout -q -- .; git merge side"},
	{"editor", `git config core.editor "$FIRE; false"`, "git commit --allow-empty"},
	{"include", `git config -f evil core.fsmonitor "$FIRE; false"; git config include.path ../evil`, "git status"},
	{"conditional include", `git config -f evil core.fsmonitor "$FIRE; false"; git config "includeIf.gitdir:$W/.path" "$W/evil"`, "git status"},
	{"conditional include by branch", `git config -f evil core.fsmonitor "$FIRE; false"; git config includeIf.onbranch:main.path "$W/evil"`, "git status"},
	{"configuration of the work tree", `git config extensions.worktreeConfig true; git config --worktree core.fsmonitor "$FIRE; false"`, "git status"},
	{"signing", fireScript("sign") + `git config commit.gpgSign true; git config gpg.program "$W/sign"`, "git commit --allow-empty -m x"},
	{"ssh signing", fireScript("sign") + `git config commit.gpgSign true; git config gpg.format ssh; git config user.signingKey key::x; git config gpg.ssh.program "$W/sign"`,
		"git commit --allow-empty -m x"},
	{"signature in the log", fireScript("sign") + `printf '#!/bin/sh\ncat >/dev/null; echo "[GNUPG:] SIG_CREATED x" >&2; echo "-----BEGIN PGP SIGNATURE-----"; echo x; echo "-----END PGP SIGNATURE-----"\n' > fake; chmod +x fake
		git -c gpg.program="$W/fake" commit -q -S --allow-empty -m signed; git config gpg.program "$W/sign"; git config log.showSignature true`, "git log"},
	{"ssh command", `git config remote.origin.url ssh://host.invalid/x; git config core.sshCommand "$FIRE"`, "git fetch"},
	{"ext remote", `git config protocol.ext.allow always; git config remote.origin.url "ext::$W/fire %S"; ` + fireScript("fire"), "git fetch"},
	{"proxy command", `git config remote.origin.url git://host.invalid/x; git config core.gitProxy "$W/fire"; ` + fireScript("fire"), "git fetch"},
	{"upload-pack", `git config remote.origin.url "$W"; git config remote.origin.uploadpack "$FIRE; git-upload-pack"`, "git fetch"},
	{"missing object", `git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true
		git config protocol.ext.allow always; ` + fireScript("fire") + `git config remote.origin.url "ext::$W/fire %S"
		b=$(git rev-parse HEAD~1:a.c); rm -f ".git/objects/${b:0:2}/${b:2}"`, "git diff HEAD~1"},
	{"credential helper", `git config credential.helper "!$FIRE"`, "echo url=https://host.invalid | git credential fill"},
	{"alias", `git config alias.st "!$FIRE"`, "git st"},
	{"trailer", `git config trailer.x.command "$FIRE"; git config trailer.x.ifexists replace`, `git commit --allow-empty -m x --trailer "x: y"`},
	{"submodule", `git init -q sub; (cd sub; ` + identity + `echo s > s; git add s; git commit -qm s; echo t >> s; git config core.fsmonitor "$FIRE; false"); git add sub 2>/dev/null; git commit -qm sub`, "git status"},
	{"pointer to a repository", `mv .git elsewhere; echo 'gitdir: elsewhere' > .git; git config core.fsmonitor "$FIRE; false"`, "git status"},
	{"link to a repository", `mv .git elsewhere; ln -s elsewhere .git; git config core.fsmonitor "$FIRE; false"`, "git status"},
	{"shared folder", `cp -a .git shared; echo ../shared > .git/commondir; git config -f shared/config core.fsmonitor "$FIRE; false"`, "git status"},
	{"bare repository", `git clone -q --bare . bare; git config -f bare/config core.bare false; git config -f bare/config core.worktree "$W"; git config -f bare/config core.fsmonitor "$FIRE; false"`,
		"cd bare && git status"},
	{"home", `mkdir -p "$HOME/home"; git config -f "$HOME/home/.gitconfig" core.fsmonitor "$FIRE; false"; chmod -R a+rX "$HOME/home"`, "git status"},
	{"home, XDG", `mkdir -p "$HOME/home/.config/git"; git config -f "$HOME/home/.config/git/config" core.fsmonitor "$FIRE; false"; chmod -R a+rX "$HOME/home"`, "git status"},
	{"environment of the job", "", "git diff; git commit --allow-empty"},
}

// hookScript makes a hook that leaves a mark.
func hookScript(name string) string { return fireScript(".git/hooks/" + name) }

// fireScript makes a program that leaves a mark.
func fireScript(file string) string {
	return `mkdir -p "$(dirname ` + file + `)"; printf '#!/bin/sh\n%s\n' "$FIRE" > ` + file + `; chmod +x ` + file + "\n"
}

// plantVector is a set on a workspace in which a vector waits.
func plantVector(t *testing.T, vs ...gitVector) *Set {
	s := newSet(t)
	s.cfg.Tree.InPlace = false // else a command could not set off much
	mark := filepath.Join(s.cfg.Tree.Dir, "fired", "mark")
	s.cfg.Env = map[string]string{"GIT_EXTERNAL_DIFF": "touch " + mark, "GIT_EDITOR": "touch " + mark}
	if !slices.ContainsFunc(vs, func(v gitVector) bool { return v.name == "environment of the job" }) {
		s.cfg.Env = nil
	}
	script := "git init -q -b main .\n" + identity + `W=$(pwd); FIRE="touch $W/fired/mark"
		mkdir fired; echo fired > .git/info/exclude
		echo one > a.c; git add a.c; git commit -qm one; echo two > a.c; git commit -qam two; echo three > a.c; touch -d '2 days ago' a.c
		echo new > new.c; echo staged > staged.c; git add staged.c
	`
	for _, v := range vs {
		script += v.plant + "\n"
	}
	bash(t, s, script+"\nrm -f fired/mark")
	return s
}

func fired(s *Set) bool {
	_, err := os.Stat(filepath.Join(s.cfg.Tree.Dir, "fired", "mark"))
	return err == nil
}

// everyGitTool calls the four tools in all of their ways.
func everyGitTool(t *testing.T, s *Set) (replies []Reply) {
	type toolCall struct {
		tool string
		args []any
	}
	calls := []toolCall{
		{"git_status", nil},
		{"git_diff", nil},
		{"git_diff", []any{"staged", true}},
		{"git_diff", []any{"ref", "HEAD~1"}},
		{"git_diff", []any{"ref", "HEAD~1..HEAD", "path", "a.c"}},
		{"git_log", nil},
		{"git_log", []any{"count", 1, "path", "a.c"}},
		{"git_commit", []any{"message", "x", "paths", []string{"a.c", "new.c"}}},
		{"git_commit", []any{"message", "x"}},
	}
	for _, folder := range []string{"sub", "bare"} { // of some vectors
		if _, err := os.Stat(filepath.Join(s.cfg.Tree.Dir, folder)); err == nil {
			calls = append(calls, toolCall{"git_status", []any{"path", folder}}, toolCall{"git_log", []any{"path", folder}}, toolCall{"git_diff", []any{"path", folder}})
		}
	}
	for _, c := range calls {
		r := call(t, s, c.tool, c.args...)
		if fired(s) {
			t.Fatalf("%s %v ran it:\n%s", c.tool, c.args, r.Text)
		}
		replies = append(replies, r)
	}
	return replies
}

// TestAttackGit holds that nothing that a repository names is run, whatever tool looks at it, and that plain git would run it.
func TestAttackGit(t *testing.T) {
	for _, v := range gitVectors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := plantVector(t, v)
			for _, r := range everyGitTool(t, s)[:1] {
				if v.name != "shared folder" && !strings.HasPrefix(r.Text, "on branch main") {
					t.Errorf("%s does not work: %s", r.Tool, r.Text)
				}
			}
			s = plantVector(t, v) // as it was
			r := call(t, s, "run_command", "command", v.git)
			if !fired(s) {
				t.Errorf("plain git does not run it either: the test tests nothing\n%s", r.Text)
			}
		})
	}
}

// All at once, since one might have hidden the other.
func TestAttackGitWithEverything(t *testing.T) {
	var vs []gitVector
	for _, v := range gitVectors {
		moves := []string{"merge driver", "signature in the log", "missing object", "submodule", "pointer to a repository", "link to a repository", "shared folder", "bare repository"}
		if !slices.Contains(moves, v.name) { // the others only add to what there is
			vs = append(vs, v)
		}
	}
	everyGitTool(t, plantVector(t, vs...))
}

// A repository that says its files are elsewhere changes nothing there, and shows nothing of it.
func TestAttackGitWorkTreeElsewhere(t *testing.T) {
	s := gitSet(t, `echo a > a; git add a; git commit -qm one; mkdir "$OUT/else"; echo secret-7 > "$OUT/else/a"; git config core.worktree "$OUT/else"; echo b > a`)
	for _, r := range append(everyGitTool(t, s), call(t, s, "git_commit", "message", "two", "paths", []string{"a"})) {
		if strings.Contains(r.Text, "secret-7") {
			t.Errorf("%s shows what is outside: %s", r.Tool, r.Text)
		}
	}
	if got := bash(t, s, `cat "$OUT/else/a"; ls -A "$OUT/else"; git --work-tree=. show HEAD:a`); got != "secret-7\na\nb" {
		t.Errorf("outside is %q", got)
	}
}

// Objects, references and files that lie outside cannot be had by way of a repository inside.
func TestAttackGitReadsNothingOutside(t *testing.T) {
	outside := `git init -q -b main "$OUT/other"; cd "$OUT/other"; ` + identity + `echo secret-7 > s; git add s; git commit -qm secret-7; ID=$(git rev-parse HEAD); cd "$OLDPWD"; `
	for name, script := range map[string]string{
		"alternates":  outside + `echo "$OUT/other/.git/objects" > .git/objects/info/alternates; echo $ID > .git/refs/heads/main`,
		"objects":     outside + `rm -r .git/objects; ln -s "$OUT/other/.git/objects" .git/objects; echo $ID > .git/refs/heads/main`,
		"references":  outside + `rm -r .git/refs; ln -s "$OUT/other/.git/refs" .git/refs`,
		"index":       outside + `ln -sf "$OUT/other/.git/index" .git/index`,
		"head":        outside + `ln -sf "$OUT/other/.git/HEAD" .git/HEAD`,
		"config":      outside + `ln -sf "$OUT/other/.git/config" .git/config`,
		"work tree":   `echo secret-7 > "$OUT/f"; ln -s "$OUT/f" f`,
		"folder":      `mkdir "$OUT/d"; echo secret-7 > "$OUT/d/f"; ln -s "$OUT/d" d`,
		"ignore file": `echo secret-7 > "$OUT/f"; ln -s "$OUT/f" .gitignore`,
		"grafts":      outside + `echo secret-7 > .git/info/grafts`,
	} {
		t.Run(name, func(t *testing.T) {
			s := gitSet(t, "echo a > a; git add a; git commit -qm one; echo b > a; git commit -qam two; "+script)
			for _, r := range everyGitTool(t, s) {
				if strings.Contains(r.Text, "secret-7") {
					t.Errorf("%s shows what is outside: %s", r.Tool, r.Text)
				}
			}
		})
	}
}

// What stands in for objects is not looked at: a history is shown as it was made.
func TestAttackGitShowsTheRealHistory(t *testing.T) {
	s := gitSet(t, `echo a > a; git add a; git commit -qm one; echo b > a; git commit -qam two; ONE=$(git rev-parse HEAD~1); TWO=$(git rev-parse HEAD)
		FAKE=$(git commit-tree -m fake HEAD^{tree}); git replace $TWO $FAKE; git replace $ONE $FAKE
		git notes add -m note-7; echo "Other <other@example.invalid> Tester <t@example.invalid>" > .mailmap
		printf '%s\n' "$TWO" > .git/info/grafts`)
	wantText(t, call(t, s, "git_log"), "", "the log: 2 commits", "Tester: two", "Tester: one", "!fake", "!note-7", "!Other")
	wantText(t, call(t, s, "git_log", "count", 1), "", "a  +1 −1", "!note-7")
}

// Arguments are never options, and a ref is never a file of a commit or a text to search for.
func TestAttackGitArguments(t *testing.T) {
	s := gitSet(t, `echo a > a; echo hidden-7 > secret; git add .; git commit -qm one; echo b > a; touch -- --output=x; ln -s a -- '-l'`)
	for _, ref := range []string{
		"--output=pwned", "-p", "--all", "-", "..--output=pwned", "HEAD..--output=pwned", "HEAD:secret", "HEAD:secret..HEAD:a", ":/one", ":secret", "HEAD^{/one}", "HEAD^@", "HEAD^!",
		"^HEAD", "HEAD HEAD", "HEAD\n--all", "HEAD\x00", "*", "HEAD^{tree}", "a", "--", "@{-1", "\u202eHEAD",
	} {
		for _, tool := range []string{"git_diff", "git_log"} {
			r := call(t, s, tool, "ref", ref)
			if r.OK || r.Class != Input || strings.Contains(r.Text, "hidden-7") {
				t.Errorf("%s with ref %q: ok=%v class=%s %s", tool, ref, r.OK, r.Class, r.Text)
			}
		}
	}
	for _, path := range []string{"--output=x", "-l", ":(exclude)a", ":/", "*"} {
		for _, tool := range []string{"git_status", "git_diff", "git_log"} {
			wantText(t, call(t, s, tool, "path", path), "")
		}
	}
	wantText(t, call(t, s, "git_commit", "message", "--amend --author=x", "paths", []string{"--output=x", "-l"}), "", "committed", "--output=x", "-l")
	if got := bash(t, s, "ls -A; git log --format=%s"); got != "--output=x\n-l\n.git\na\nsecret\n--amend --author=x\none" {
		t.Errorf("afterwards: %q", got)
	}
}
