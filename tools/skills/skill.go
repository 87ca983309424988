package skills

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"muster/agents/document"
	"muster/budget"
)

// Named finds a skill by its name, or by that of its folder; blanks around it and its case do not count.
func Named(all []Skill, name string) (Skill, bool) {
	name = strings.TrimSpace(name)
	for _, same := range []func(Skill) bool{
		func(s Skill) bool { return s.Name == name },
		func(s Skill) bool { return s.alias == name },
		func(s Skill) bool { return strings.EqualFold(s.Name, name) || strings.EqualFold(s.alias, name) },
	} {
		for _, s := range all {
			if same(s) {
				return s, true
			}
		}
	}
	return Skill{}, false
}

// Body is the text of a skill without its head, and the line of the file at which it begins, from 1.
func (s Skill) Body() (text string, line int, err error) {
	f, err := s.in.open(s.File)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, fileBytes+1))
	switch {
	case err != nil:
		return "", 0, err
	case len(data) > fileBytes:
		return "", 0, fmt.Errorf("%s has over %d bytes by now", s.File, fileBytes)
	}
	_, body, line, _ := document.Head(string(data))
	trimmed := strings.TrimLeft(body, "\n")
	return strings.TrimRight(trimmed, "\n"), line + len(body) - len(trimmed), nil
}

// The least that a row of List shows of a description before rows are left out.
const leastChars = 60

// List is a row for each skill, in at most room characters: descriptions are cut where they are too long for that, all to the same length, and where even
// that is not enough the last ones are left out. shown is how many rows there are.
func List(all []Skill, room int) (text string, shown int) {
	for most := descriptionChars; ; most = most * 3 / 4 {
		most = max(most, leastChars)
		var rows []string
		chars := 0
		for _, s := range all {
			row := "- " + s.Name + ": " + budget.Preview(s.Description, most)
			if chars += budget.Chars(row) + 1; chars > room {
				break
			}
			rows = append(rows, row)
		}
		if len(rows) == len(all) || most == leastChars {
			return strings.Join(rows, "\n"), len(rows)
		}
	}
}

// Bounds are how much of a skill's files is copied.
type Bounds struct {
	Files int
	Bytes int64
}

// Copied is what came of a copy.
type Copied struct {
	Dir   string // absolute
	Files int    // copied, the SKILL.md among them
	Left  int    // over a bound, no regular files, or not to be read
}

// copyDepth is how many folders deep files of a skill are looked for.
const copyDepth = 16

// Copy puts the files of a skill, which nobody but its owner may change, into a new folder below scratch, an agent's own: there it can read them. Nothing
// that the agent has put there leads the copy elsewhere.
func (s Skill) Copy(scratch string, most Bounds) (Copied, error) {
	to, err := os.OpenRoot(scratch)
	if err != nil {
		return Copied{}, err
	}
	defer to.Close()
	if err := to.Mkdir("skills", 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return Copied{}, err
	}
	rel := path.Join("skills", s.Name)
	err = to.Mkdir(rel, 0o755)
	if errors.Is(err, fs.ErrExist) {
		rel += "-" + strings.ToLower(rand.Text()[:8])
		err = to.Mkdir(rel, 0o755)
	}
	if err != nil {
		return Copied{}, err
	}
	into, err := to.OpenRoot(rel)
	if err != nil {
		return Copied{}, err
	}
	defer into.Close()
	from, err := os.OpenRoot(s.Dir)
	if err != nil {
		return Copied{}, err
	}
	defer from.Close()
	c := copying{from: from, to: into, most: most, first: path.Base(s.File), done: Copied{Dir: filepath.Join(scratch, filepath.FromSlash(rel))}}
	if err = c.file(c.first); err == nil {
		err = fs.WalkDir(from.FS(), ".", c.visit)
	}
	return c.done, err
}

// copying is a copy under way.
type copying struct {
	from, to *os.Root
	most     Bounds
	first    string // the SKILL.md, which goes before all others
	done     Copied
}

func (c *copying) visit(name string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		c.done.Left++
		return nil
	case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || strings.Count(name, "/") >= copyDepth):
		c.done.Left++
		return fs.SkipDir
	case d.IsDir() || name == c.first:
		return nil
	case c.done.Files >= c.most.Files:
		c.done.Left++
		return nil
	}
	if err := c.to.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return c.file(name)
}

// file copies one file where it fits; only an error of the copy itself is returned.
func (c *copying) file(name string) error {
	f, err := openIn(c.from, name)
	if err != nil {
		c.done.Left++
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > c.most.Bytes {
		c.done.Left++
		return nil
	}
	mode := fs.FileMode(0o444) | info.Mode()&0o111
	out, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(f, c.most.Bytes))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	c.most.Bytes -= n
	c.done.Files++
	return err
}
