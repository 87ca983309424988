package tools

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestGitDiff(t *testing.T) {
	s := gitSet(t, `seq 1 20 > n; echo a > a; printf 'x\0y' > bin; git add .; git commit -qm one; git tag v1
		echo b > a; git commit -qam two; git checkout -qb side v1; echo s > s; git add s; git commit -qm side; git checkout -q main
		sed -i 's/^7$/seven/' n; git add n; sed -i 's/^15$/fifteen/' n; printf 'x\0z' > bin; echo new > new`)
	wantText(t, call(t, s, "git_diff"), "", "2 files, +1 −1\n", "-15\n+fifteen", "!seven\n+", "Binary files a/bin and b/bin differ", "!new")
	wantText(t, call(t, s, "git_diff", "path", "n"), "", "1 file, +1 −1\ndiff --git a/n b/n\n", "!bin")
	wantText(t, call(t, s, "git_diff", "staged", true), "", "1 file, +1 −1\n", "-7\n+seven", "!fifteen")
	wantText(t, call(t, s, "git_diff", "ref", "v1"), "", "-a\n+b", "+seven", "+fifteen", "3 files, +3 −3")
	wantText(t, call(t, s, "git_diff", "ref", "v1", "staged", true), "", "-a\n+b", "+seven", "!fifteen")
	wantText(t, call(t, s, "git_diff", "ref", "v1..HEAD"), "", "1 file, +1 −1\n", "-a\n+b")
	wantText(t, call(t, s, "git_diff", "ref", "main..side"), "", "-b\n+a", "+s")
	wantText(t, call(t, s, "git_diff", "ref", "main...side"), "", "1 file, +1 −0", "+s", "!-b")
	wantText(t, call(t, s, "git_diff", "ref", "HEAD^1..HEAD"), "", "-a\n+b")
	wantText(t, call(t, s, "git_diff", "ref", "v1..", "path", "a"), "", "-a\n+b")
	wantText(t, call(t, s, "git_diff", "ref", "v1..HEAD", "staged", true), Input, "names two commits")
	wantText(t, call(t, s, "git_diff", "ref", "sied"), Input, "bad revision 'sied'", "the nearest names are: side")
	wantText(t, call(t, s, "git_diff", "ref", "HEAD..nothing"), Input, "bad revision 'nothing'")
	wantText(t, call(t, s, "git_diff", "path", "a"), "", "no differences in a")
	bash(t, s, "git commit -qam three")
	wantText(t, call(t, s, "git_diff"), "", "no differences; there are 1 untracked, which git_status lists")
	bash(t, s, "git add new; git mv n m; echo 16.5 >> m")
	wantText(t, call(t, s, "git_diff", "path", "new"), "", "no differences in new; there are 1 staged, which staged: true shows")
	wantText(t, call(t, s, "git_diff", "staged", true), "", "rename from n\nrename to m", "new file mode")
	bash(t, s, "git commit -qam four; chmod +x m; rm a")
	wantText(t, call(t, s, "git_diff"), "", "old mode 100644\nnew mode 100755", "deleted file mode", "2 files, +0 −1")
	wantText(t, call(t, s, "git_diff", "staged", true), "", "no differences; there are 2 not staged, which staged: false shows")
}

func TestGitDiffOfSpecialStates(t *testing.T) {
	s := gitSet(t, "echo a > a; git add a; echo b > a")
	wantText(t, call(t, s, "git_diff"), "", "-a\n+b")
	wantText(t, call(t, s, "git_diff", "staged", true), "", "new file mode", "+a")
	wantText(t, call(t, s, "git_diff", "ref", "HEAD"), Input, "there are no commits yet")
	s = gitSet(t, "echo a > a; git add a; git commit -qm one; git checkout -qb side; echo s > a; git commit -qam s; git checkout -q main; echo m > a; git commit -qam m; git merge side || true")
	wantText(t, call(t, s, "git_diff"), "", "1 file, ", "diff --cc a", "++<<<<<<< HEAD", " +m\n", "+ s\n")
	s = gitSet(t, "git init -q sub; cd sub; "+identity+"echo s > s; git add s; git commit -qm s; cd ..; git add sub 2>&1; git commit -qm sub; cd sub; echo t > s; git commit -qam t; echo u > s")
	wantText(t, call(t, s, "git_diff"), "", "-Subproject commit ", "+Subproject commit ")
	wantText(t, call(t, s, "git_diff", "path", "sub"), "", "diff --git a/sub/s b/sub/s", "-t\n+u")
	s = gitSet(t, `printf 'a\r\nb\r\n' > a; printf 'x' > x; git add .; git commit -qm one; printf 'a\nb\r\n\033[1mc\007\n' > a; printf 'y' > x`)
	wantText(t, call(t, s, "git_diff"), "", "-a␍\n+a\n b␍\n+␛[1mc␇\n", "\\ No newline at end of file")
}

// A diff that is cut has the list of its files, exact numbers, and whole lines.
func TestGitDiffIsCut(t *testing.T) {
	s := gitSet(t, "for i in $(seq 30); do seq 1 100 > f$i; done; git add .; git commit -qm one; for i in $(seq 30); do seq 101 200 > f$i; done",
		func(c *Config) { c.Caps.OutputChars = 4000 })
	r := call(t, s, "git_diff")
	checkText(t, r, 4000)
	wantText(t, r, "", "30 files, +3000 −3000:\nf1  +100 −100\n", "lines of the diff", "ask for one of the files with path")
	total := 30 * (4 + 1 + 200)
	cuts := r.Facts.Cuts
	if len(cuts) != 2 && len(cuts) != 1 || cuts[0].Unit != "lines" || cuts[0].Total != int64(total) {
		t.Fatalf("facts: %+v, want a total of %d lines", cuts, total)
	}
	if got := strings.Count(r.Text[strings.Index(r.Text, "diff --git"):strings.Index(r.Text, "[… showing "+fmt.Sprint(cuts[0].Shown))], "\n"); int64(got) != cuts[0].Shown {
		t.Errorf("%d lines are shown, %d said", got, cuts[0].Shown)
	}
	if one := call(t, s, "git_diff", "path", "f30"); len(one.Facts.Cuts) > 0 || !strings.Contains(one.Text, "+200") {
		t.Errorf("one file: %+v\n%s", one.Facts.Cuts, one.Text)
	}
}

// A flood of a diff is held in bounded memory, and its size is known.
func TestGitDiffOfAFlood(t *testing.T) {
	s := gitSet(t, "seq 1 400000 > a; git add a; git commit -qm one; seq 400001 800000 > a", func(c *Config) { c.Caps.GitBytes = 16 << 10 })
	r := call(t, s, "git_diff")
	wantText(t, r, "", "1 file, +400000 −400000", " of 800005 lines of the diff")
	if r.Facts.Kept > 16<<10 || r.Facts.Seen < 5<<20 {
		t.Errorf("kept %d of %d bytes", r.Facts.Kept, r.Facts.Seen)
	}
}

func TestGitDiffCutsLongLines(t *testing.T) {
	s := gitSet(t, "echo a > a; git add a; git commit -qm one; printf '中%.0s' $(seq 3000) > a")
	r := call(t, s, "git_diff")
	wantText(t, r, "", "… (+1001 chars)")
	if c := r.Facts.Cuts; len(c) != 1 || c[0].Unit != "characters" || c[0].Shown != 2000 || c[0].Total != 3001 {
		t.Errorf("facts: %+v", c)
	}
}

// What git_diff shows of files is what git apply makes of it: the text is a patch.
func TestGitDiffIsAPatch(t *testing.T) {
	s := gitSet(t, "seq 1 50 > a; seq 1 5 > b; seq 1 9 > c; git add .; git commit -qm one; sed -i 's/^10$/ten/;s/^40$/forty/' a; git rm -q b; git mv c d; echo e > e; git add .")
	r := call(t, s, "git_diff", "staged", true)
	_, patch, _ := strings.Cut(r.Text, "\n")
	bash(t, s, "git clone -q . \"$OUT/clone\"")
	cmd := exec.Command("git", "apply", "--index", "-")
	cmd.Dir = filepath.Join(filepath.Dir(s.cfg.Tree.Dir), "clone")
	cmd.Stdin = strings.NewReader(patch + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, r.Text)
	}
	if got := bash(t, s, "git write-tree; git -C \"$OUT/clone\" write-tree"); strings.Split(got, "\n")[0] != strings.Split(got, "\n")[1] {
		t.Errorf("the trees are %s", got)
	}
}
