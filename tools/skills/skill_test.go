package skills

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/budget"
)

func TestNamed(t *testing.T) {
	all := []Skill{{Name: "tide-table", alias: "tides"}, {Name: "tides", alias: "other"}, {Name: "ebb", alias: "Ebb Folder"}}
	for name, want := range map[string]string{"tide-table": "tide-table", "tides": "tides", " other ": "tides", "TIDE-TABLE": "tide-table", "ebb folder": "ebb"} {
		if s, ok := Named(all, name); !ok || s.Name != want {
			t.Errorf("%q finds %q, %v", name, s.Name, ok)
		}
	}
	if s, ok := Named(all, "tide"); ok {
		t.Errorf("tide finds %q", s.Name)
	}
}

func TestBodyIsWhatFollowsTheHead(t *testing.T) {
	tree := newTree(t, map[string]string{
		".claude/skills/a/SKILL.md": "\ufeff---\r\nname: a\r\ndescription: d\r\n---\r\n\r\n\r\n# A\r\n\r\n---\r\nmore\r\n\r\n", ".claude/skills/b/SKILL.md": "---\nname: b\ndescription: d\n---\n",
	})
	found, _ := Find(tree, nil)
	text, line, err := found[0].Body()
	if err != nil || text != "# A\n\n---\nmore" || line != 7 {
		t.Errorf("%q at line %d, %v", text, line, err)
	}
	if text, _, err := found[1].Body(); err != nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
	for content, want := range map[string]string{"no head any more": "no head any more", strings.Repeat("x", fileBytes+1): "by now"} {
		if err := os.WriteFile(filepath.Join(tree.Dir, found[0].File), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		text, _, err := found[0].Body()
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("got %.100q", text)
		}
	}
}

func TestListFits(t *testing.T) {
	var all []Skill
	for i := range 40 {
		all = append(all, Skill{Name: "skill-" + strings.Repeat("x", i%7), Description: strings.Repeat("中文 words ", 5+i)})
	}
	for _, room := range []int{0, 10, 100, 500, 2500, 6000, 100_000} {
		text, shown := List(all, room)
		if n := budget.Chars(text); n > room || shown > len(all) || text != "" && strings.Count(text, "\n")+1 != shown {
			t.Errorf("room %d: %d characters, %d rows", room, n, shown)
		}
		if want := map[int]int{0: 0, 10: 0, 100_000: 40, 6000: 40}; shown != want[room] && room != 100 && room != 500 && room != 2500 {
			t.Errorf("room %d: %d rows", room, shown)
		}
	}
	if text, shown := List(all[:2], 6000); shown != 2 || !strings.Contains(text, all[1].Description[:len(all[1].Description)-1]) {
		t.Errorf("with room for all nothing is cut: %s", text)
	}
	if text, shown := List(nil, 100); text != "" || shown != 0 {
		t.Errorf("of none: %q, %d", text, shown)
	}
}

// files are the regular files below a folder with their modes.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		data, err := os.ReadFile(p)
		info, ierr := d.Info()
		if err := errors.Join(err, ierr); err != nil {
			return err
		}
		out[rel] = info.Mode().String()[:4] + " " + string(data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCopyHoldsTheFilesOfASkill(t *testing.T) {
	dir, scratch := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{
		"private/key": "PRIVATE", "own/pack/SKILL.md": md("pack", "d"), "own/pack/scripts/run.sh": "#!/bin/sh\n", "own/pack/refs/a.md": "a", "own/pack/refs/inside.md": "-> a.md",
		"own/pack/leak": "-> ../../private/key", "own/pack/all": "-> ../../private", "own/pack/.git/config": "x", "own/pack/node_modules/y/z": "z",
	})
	if err := os.Chmod(filepath.Join(dir, "own/pack/scripts/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, problems := Find(nil, []string{filepath.Join(dir, "own")})
	if len(found) != 1 || len(problems) != 0 {
		t.Fatalf("%v, %v", found, problems)
	}
	got, err := found[0].Copy(scratch, Bounds{Files: 10, Bytes: 1000})
	if err != nil || got.Dir != filepath.Join(scratch, "skills", "pack") || got.Files != 4 || got.Left != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	want := map[string]string{"SKILL.md": "-r-- " + md("pack", "d"), "scripts/run.sh": "-r-x #!/bin/sh\n", "refs/a.md": "-r-- a", "refs/inside.md": "-r-- a"}
	if diff := cmp.Diff(want, files(t, got.Dir)); diff != "" {
		t.Error(diff)
	}
	again, err := found[0].Copy(scratch, Bounds{Files: 2, Bytes: int64(len(md("pack", "d"))) + 1})
	if err != nil || again.Dir == got.Dir || filepath.Dir(again.Dir) != filepath.Dir(got.Dir) || again.Files != 2 || again.Left != 6 {
		t.Errorf("with small bounds: %+v, %v", again, err)
	}
	if got := files(t, again.Dir); got["SKILL.md"] == "" || len(got) != 2 {
		t.Errorf("it holds %v", got)
	}
}

// An agent may have put links into its scratch folder: a copy never follows one out.
func TestCopyIsNotLedElsewhere(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"own/pack/SKILL.md": md("pack", "d"), "target/keep": "x"})
	found, _ := Find(nil, []string{filepath.Join(dir, "own")})
	for name, link := range map[string]string{"the folder of skills": "skills", "the skill's": "skills/pack"} {
		scratch := t.TempDir()
		write(t, scratch, map[string]string{link: "-> " + filepath.Join(dir, "target")})
		got, err := found[0].Copy(scratch, Bounds{Files: 10, Bytes: 1000})
		if diff := cmp.Diff(map[string]string{"keep": "-rw- x"}, files(t, filepath.Join(dir, "target"))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err == nil && !strings.HasPrefix(got.Dir, filepath.Join(scratch, "skills", "pack-")) {
			t.Errorf("%s: copied to %s", name, got.Dir)
		}
	}
}
