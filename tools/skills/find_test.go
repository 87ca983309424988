package skills

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/tools/workspace"
)

// newTree is a workspace with files: a text, or "-> target" for a link.
func newTree(t testing.TB, files map[string]string) *workspace.Tree {
	t.Helper()
	dir := t.TempDir()
	ws := filepath.Join(dir, "ws")
	write(t, ws, files)
	tree, err := workspace.OpenDir(ws, filepath.Join(dir, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		p := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if target, link := strings.CutPrefix(text, "-> "); link && err == nil {
			err = os.Symlink(target, p)
		} else if err == nil {
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// md is a SKILL.md.
func md(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\nBody of " + name + ".\n"
}

// rows are the skills, each as "name: description (file)".
func rows(all []Skill) []string {
	out := []string{}
	for _, s := range all {
		out = append(out, s.Name+": "+s.Description+" ("+s.File+")")
	}
	return out
}

func said(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

func TestSkillsAreFoundByPriority(t *testing.T) {
	tree := newTree(t, map[string]string{
		".muster/skills/one/SKILL.md": md("one", "of muster"), ".agents/skills/one/SKILL.md": md("one", "of agents"), ".agents/skills/two/SKILL.md": md("two", "of agents"),
		".claude/skills/three/SKILL.md": md("three", "of claude"), ".claude/skills/group/deep/four/SKILL.md": md("four", "in a group"),
		".claude/skills/README.md": "no skill", ".claude/skills/three/sub/SKILL.md": md("sub", "a file of three"), ".claude/skills/.git/x/SKILL.md": md("x", "hidden"),
		"skills/five/SKILL.md": md("five", "elsewhere"), ".claude/skills/six/notes.md": "no skill either",
	})
	own, more := t.TempDir(), t.TempDir()
	write(t, own, map[string]string{"two/SKILL.md": md("two", "of the user"), "seven/SKILL.md": md("seven", "of the user")})
	write(t, more, map[string]string{"seven/SKILL.md": md("seven", "of the user's second"), "eight/SKILL.md": md("eight", "of the user's second")})
	found, problems := Find(tree, []string{own, filepath.Join(own, "missing"), more})
	want := []string{
		"one: of muster (.muster/skills/one/SKILL.md)", "two: of agents (.agents/skills/two/SKILL.md)", "three: of claude (.claude/skills/three/SKILL.md)",
		"four: in a group (.claude/skills/group/deep/four/SKILL.md)", "seven: of the user (" + own + "/seven/SKILL.md)", "eight: of the user's second (" + more + "/eight/SKILL.md)",
	}
	if diff := cmp.Diff(want, rows(found)); diff != "" {
		t.Error(diff)
	}
	for i, s := range found {
		if s.Foreign != (i < 4) {
			t.Errorf("%s is foreign: %v", s.Name, s.Foreign)
		}
	}
	text := said(problems)
	for _, w := range []string{
		".agents/skills/one/SKILL.md: .muster/skills/one/SKILL.md has the name one too, and comes first", own + "/two/SKILL.md: .agents/skills/two/SKILL.md has the name two too", more + "/seven/SKILL.md: ",
	} {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not said in\n%s", w, text)
		}
	}
	if len(problems) != 3 {
		t.Errorf("%d problems:\n%s", len(problems), text)
	}
	if found, problems := Find(nil, nil); len(found)+len(problems) > 0 {
		t.Errorf("nowhere are %v, %v", found, problems)
	}
}

func TestOneBadSkillHidesNoOther(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"secret/SKILL.md": md("secret", "PRIVATE")})
	tree := newTree(t, map[string]string{
		".claude/skills/aaa/SKILL.md": "---\nname: [unclosed\ndescription: {oops\n---\nx\n", ".claude/skills/good/SKILL.md": md("good", "still here"),
		".claude/skills/huge/SKILL.md": md("huge", "big") + strings.Repeat("x", fileBytes), ".claude/skills/head/SKILL.md": "---\n" + strings.Repeat("# never ends\n", 10_000),
		".claude/skills/folder/SKILL.md/x": "a folder", ".claude/skills/out/SKILL.md": "-> " + filepath.Join(dir, "secret", "SKILL.md"), ".claude/skills/outer": "-> " + filepath.Join(dir, "secret"),
		".claude/skills/up": "-> ../../../..", ".claude/skills/loop": "-> loop", ".claude/skills/self": "-> .", ".agents/skills": "-> " + dir,
		".claude/skills/none/SKILL.md": "no head\n", ".claude/skills/link": "-> ../../lib/linked", "lib/linked/SKILL.md": md("linked", "behind a link inside"),
		".claude/skills/lower/skill.md": md("lower", "small letters"), ".muster/skills": "a file",
	})
	if err := os.MkdirAll(filepath.Join(tree.Dir, ".claude/skills/fifo"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(tree.Dir, ".claude/skills/fifo/SKILL.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	found, problems := Find(tree, nil)
	want := []string{
		"good: still here (.claude/skills/good/SKILL.md)", "linked: behind a link inside (.claude/skills/link/SKILL.md)", "lower: small letters (.claude/skills/lower/skill.md)",
	}
	if diff := cmp.Diff(want, rows(found)); diff != "" {
		t.Error(diff)
	}
	text := said(problems)
	for _, w := range []string{
		".claude/skills/aaa/SKILL.md:2: its head is no YAML: ", ".claude/skills/huge/SKILL.md: it has 1048", ".claude/skills/head/SKILL.md:1: its head does not end within 65536 bytes",
		".claude/skills/folder/SKILL.md: it is a folder", ".claude/skills/out/SKILL.md: outside the workspace", ".claude/skills/outer: it cannot be followed: outside the workspace",
		".claude/skills/up: it cannot be followed", ".claude/skills/loop: it cannot be followed", ".agents/skills: it cannot be looked into: outside the workspace",
		".claude/skills/none/SKILL.md:1: it has no head", ".claude/skills/fifo/SKILL.md: it is a FIFO", ".claude/skills/lower/skill.md: other programs look for",
	} {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not said in\n%s", w, text)
		}
	}
	if strings.Contains(text, "PRIVATE") {
		t.Errorf("it was read: %s", text)
	}
}

func TestThousandsOfSkillsAreBounded(t *testing.T) {
	files := map[string]string{".muster/skills/zz/SKILL.md": md("zz", "first folder")}
	for i := range maxSkills + 20 {
		name := "s" + strings.Repeat("a", i/26) + string(rune('a'+i%26))
		files[".agents/skills/"+name+"/SKILL.md"] = md(name, "one of many")
	}
	for i := range maxFolders + 5 {
		files[".claude/skills/e"+strings.Repeat("b", i/200)+string(rune('A'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676))+"/x"] = ""
	}
	found, problems := Find(newTree(t, files), nil)
	text := said(problems)
	if len(found) != maxSkills || found[0].Name != "zz" || !strings.Contains(text, "there are more than 500 skills") {
		t.Errorf("%d skills:\n%.500s", len(found), text)
	}
	if !strings.Contains(text, ".claude/skills: it has more than 2000 entries") && !strings.Contains(text, ".claude/skills: it has more than 2000 folders") {
		t.Errorf("the folders are not bounded:\n%.500s", text)
	}
	if len(problems) > 10 {
		t.Errorf("%d problems", len(problems))
	}
}

func TestFoldersOfTheUser(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"private/key": "PRIVATE", "store/pack/SKILL.md": md("pack", "installed by a link"), "own/pack": "-> ../store/pack", "own/leak/SKILL.md": "-> ../../private/key",
		"own/real/SKILL.md": md("real", "a folder"), "own/dead": "-> nowhere",
	})
	if err := os.MkdirAll(filepath.Join(dir, "own/fifo"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "own/fifo/SKILL.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	found, problems := Find(nil, []string{filepath.Join(dir, "own"), filepath.Join(dir, "private/key")})
	if diff := cmp.Diff([]string{"pack: installed by a link (" + dir + "/own/pack/SKILL.md)", "real: a folder (" + dir + "/own/real/SKILL.md)"}, rows(found)); diff != "" {
		t.Error(diff)
	}
	text := said(problems)
	if !strings.Contains(text, "own/leak/SKILL.md: ") || !strings.Contains(text, "own/fifo/SKILL.md: it is no regular file") || strings.Contains(text, "PRIVATE") || len(problems) != 2 {
		t.Errorf("problems:\n%s", text)
	}
}
