package tools

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"

	"muster/budget"
	"muster/tools/skills"
)

// brought remembers what was copied of the skills of the user, which lie outside of what an agent reads, by their names.
type brought struct {
	mu     sync.Mutex
	copies map[string]skills.Copied
}

type skillArgs struct {
	Name string `json:"name" empty:"ok" jsonschema:"as listed"`
}

func skill() Tool {
	return define("skill", Read, "Reads a skill, and says where its files are.", runSkill)
}

func runSkill(_ context.Context, c *Call, a skillArgs) (Output, error) {
	s, ok := skills.Named(c.set.cfg.Skills, a.Name)
	if !ok {
		return Output{}, fail(Input, "no skill %q; %s", shorten(a.Name, 80), c.skillNames(a.Name))
	}
	text, line, err := s.Body()
	if err != nil {
		return Output{}, fail(Permanent, "skill %s cannot be read: %v; go on without it", s.Name, err)
	}
	out, file := Output{}, s.File
	if s.Foreign {
		out.Untrusted = c.outside(s.File)
		out.Before = fmt.Sprintf("skill %s; the files that it names are in %s", s.Name, shownName(s.Dir))
	} else {
		done, err := c.bring(s)
		if err != nil {
			return Output{}, fmt.Errorf("copy the files of skill %s: %w", s.Name, err)
		}
		file = path.Join(done.Dir, path.Base(s.File))
		out.Before = fmt.Sprintf("skill %s; the files that it names are in %s (%s)", s.Name, done.Dir, plural(int64(done.Files), "file"))
		if done.Left > 0 {
			out.Before += fmt.Sprintf("\n[%s not copied: too much, or no regular files]", plural(int64(done.Left), "file"))
			out.Facts.Cuts = []budget.Cut{{What: "the files of the skill", Unit: "files", Shown: int64(done.Files), Total: int64(done.Files + done.Left)}}
		}
	}
	if text == "" {
		out.Before += "\nit has no text"
		return out, nil
	}
	c.skillBody(&out, s.Name, text, file, line)
	return out, nil
}

// skillBody puts as many lines of a text into out as it may have, and says how to read on in file, in which it begins at line.
func (c *Call) skillBody(out *Output, name, text, file string, line int) {
	text, _ = defused(budget.Plain(text))
	room := min(c.Caps.SkillChars, c.Room-budget.Chars(out.Before)-1)
	total := int64(budget.Chars(text))
	if total <= int64(room) {
		out.Text = text
		return
	}
	notice := func(shown int64, next int) (budget.Cut, string) {
		cut := budget.Cut{What: "skill " + name, Unit: "characters", Shown: shown, Total: total}
		return cut, cut.Notice(fmt.Sprintf("read_file with path %s and offset %d reads on", file, next))
	}
	_, widest := notice(total, 1<<30)
	kept := headChars(text, max(1, room-budget.Chars(widest)-1))
	if i := strings.LastIndexByte(kept, '\n'); i > 0 {
		kept = kept[:i] // whole lines, so that the offset is exact
		line += strings.Count(kept, "\n") + 1
	}
	cut, said := notice(int64(budget.Chars(kept)), line)
	out.Text, out.After = kept, said
	out.Facts.Cuts = append(out.Facts.Cuts, cut)
}

// bring copies the files of a skill, once.
func (c *Call) bring(s skills.Skill) (skills.Copied, error) {
	b := &c.set.brought
	b.mu.Lock()
	defer b.mu.Unlock()
	if done, ok := b.copies[s.Name]; ok {
		return done, nil
	}
	done, err := s.Copy(c.Tree.Scratch, skills.Bounds{Files: c.Caps.ListEntries, Bytes: int64(c.Caps.ReadAdmitBytes)})
	if err != nil {
		return done, err
	}
	if b.copies == nil {
		b.copies = map[string]skills.Copied{}
	}
	b.copies[s.Name] = done
	return done, nil
}

// skillNames lists what there is, the nearest to a wrong name first, as far as that fits.
func (c *Call) skillNames(wrong string) string {
	var names []string
	for _, s := range c.set.cfg.Skills {
		names = append(names, s.Name)
	}
	names = budget.Nearest(wrong, names, len(names))
	shown := names[:min(len(names), rowsThatFit(names, c.Room/2))]
	text := "there are, the nearest first: " + strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
