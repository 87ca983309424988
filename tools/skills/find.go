package skills

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"muster/budget"
	"muster/tools/workspace"
)

// The bounds of a search.
const (
	maxSkills   = 500
	maxFolders  = 2_000 // looked into below one of Roots or of the user's folders; as many entries of one folder
	maxDepth    = 4     // folders from there to a skill
	maxProblems = 500
	headBytes   = 64 << 10
	fileBytes   = 1 << 20 // of a SKILL.md
)

const fileName = "SKILL.md"

// Roots are the folders of skills in the files that are worked on, the first wins.
func Roots() []string { return []string{".muster/skills", ".agents/skills", ".claude/skills"} }

// Skill is one that was found.
type Skill struct {
	Name        string // small letters, digits and hyphens, at most 64
	Description string // one line of at most 1,024 characters
	Dir         string // its folder: relative to the root of the files with /, or absolute
	File        string // its SKILL.md, likewise
	Foreign     bool   // it came with the files that are worked on: what it says is data

	alias string // name of its folder
	in    folder
}

// folder is where skills lie: in the files that are worked on, or in a folder of the user.
type folder interface {
	open(name string) (fs.File, error)                 // a regular file
	isFolder(name string) (bool, error)                // links followed as far as they may be; false of what is not there
	list(name string, most int) ([]fs.FileInfo, error) // links as themselves
	real(name string) string                           // the one name of what may have several
}

// Find looks for skills in the files of t (nil: nowhere) and in folders of the user; where several have one name the first counts. Nothing that is
// wrong with one of them is an error.
func Find(t *workspace.Tree, own []string) ([]Skill, []Problem) {
	s := search{names: map[string]Skill{}, seen: map[string]bool{}}
	if t != nil {
		for _, r := range Roots() {
			s.root(inTree{t}, r, true)
		}
	}
	for _, dir := range own {
		s.root(ofUser{}, dir, false)
	}
	if more := s.untold; more > 0 {
		s.problems = append(s.problems, Problem{File: s.problems[0].File, Text: fmt.Sprintf("and %d more problems, here and elsewhere", more)})
	}
	return s.found, s.problems
}

// search is one run of Find.
type search struct {
	found    []Skill
	problems []Problem
	untold   int // problems over maxProblems
	names    map[string]Skill
	seen     map[string]bool // folders, under the names that they have behind links
	full     bool
}

func (s *search) say(file, format string, a ...any) {
	s.tell(Problem{File: file, Text: fmt.Sprintf(format, a...), Skipped: true})
}

func (s *search) tell(p Problem) {
	if len(s.problems) == maxProblems {
		s.untold++
		return
	}
	s.problems = append(s.problems, p)
}

// root looks through one folder of skills, the nearest first.
func (s *search) root(in folder, root string, foreign bool) {
	there, err := in.isFolder(root)
	if err != nil {
		s.say(root, "it cannot be looked into: %s", reason(err))
	}
	if !there {
		return
	}
	type todo struct {
		dir   string
		depth int
	}
	queue := []todo{{root, 0}}
	for seen := 0; len(queue) > 0; seen++ {
		if seen == maxFolders {
			s.say(root, "it has more than %d folders: the rest was not looked at", maxFolders)
			return
		}
		at := queue[0]
		queue = queue[1:]
		real := in.real(at.dir)
		if s.seen[real] {
			continue // one folder under two names
		}
		s.seen[real] = true
		names, isSkill := s.entries(in, at.dir)
		if isSkill != "" && at.depth > 0 {
			s.add(in, at.dir, isSkill, foreign)
			if s.full {
				return
			}
			continue
		} else if isSkill != "" {
			s.say(path.Join(at.dir, isSkill), "a skill needs a folder of its own in %s", root)
		}
		if at.depth == maxDepth {
			continue
		}
		for _, n := range names {
			queue = append(queue, todo{path.Join(at.dir, n), at.depth + 1})
		}
	}
}

// entries are the folders in dir, sorted, and the name of its SKILL.md where it has one.
func (s *search) entries(in folder, dir string) (folders []string, skill string) {
	infos, err := in.list(dir, maxFolders+1)
	if err != nil {
		s.say(dir, "it cannot be looked into: %s", reason(err))
		return nil, ""
	}
	if len(infos) > maxFolders {
		if f, err := in.open(path.Join(dir, fileName)); err == nil {
			f.Close()
			return nil, fileName
		}
		s.say(dir, "it has more than %d entries: only so many were looked at", maxFolders)
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	for _, info := range infos {
		name := info.Name()
		if name == fileName || skill == "" && strings.EqualFold(name, fileName) && info.Mode().IsRegular() {
			skill = name
		}
		if strings.HasPrefix(name, ".") || name == "node_modules" || strings.EqualFold(name, fileName) || !showable(name) {
			continue
		}
		is := info.IsDir()
		if info.Mode()&fs.ModeSymlink != 0 {
			if is, err = in.isFolder(path.Join(dir, name)); err != nil {
				s.say(path.Join(dir, name), "it cannot be followed: %s", reason(err))
			}
		}
		if is {
			folders = append(folders, name)
		}
	}
	return folders, skill
}

// showable says that a name can stand in a text as it is.
func showable(name string) bool { return budget.Preview(name, len(name)+1) == name }

// add reads the skill in a folder.
func (s *search) add(in folder, dir, file string, foreign bool) {
	sk := Skill{Dir: dir, File: path.Join(dir, file), Foreign: foreign, alias: path.Base(dir), in: in}
	if len(s.found) == maxSkills {
		s.full = true
		s.say(sk.File, "there are more than %d skills: this one and the rest are not offered", maxSkills)
		return
	}
	data, whole, err := sk.head()
	if err != nil {
		s.say(sk.File, "%s", reason(err))
		return
	}
	p := parse(data, sk.alias, whole)
	if file != fileName {
		p.problems = slices.Insert(p.problems, 0, Problem{Text: "other programs look for a file named " + fileName})
	}
	skipped := false
	for _, one := range p.problems {
		one.File = sk.File
		s.tell(one)
		skipped = skipped || one.Skipped
	}
	if skipped {
		return
	}
	sk.Name, sk.Description = p.name, p.description
	if first, twice := s.names[sk.Name]; twice {
		s.say(sk.File, "%s has the name %s too, and comes first", first.File, sk.Name)
		return
	}
	s.names[sk.Name] = sk
	s.found = append(s.found, sk)
}

// head reads the beginning of the file; whole says that it is all of it.
func (s Skill) head() (data []byte, whole bool, err error) {
	f, err := s.in.open(s.File)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if info.Size() > fileBytes {
		return nil, false, fmt.Errorf("it has %d bytes, at most %d are read: put what is long into files beside it", info.Size(), fileBytes)
	}
	data, err = io.ReadAll(io.LimitReader(f, headBytes+1))
	if len(data) > headBytes {
		return data[:headBytes], false, err
	}
	return data, true, err
}
