package workspace

import (
	"io"
	"os"
	"strings"
)

// ignoreFileBytes and ignoreRules bound one ignore file; a larger one is not obeyed.
const (
	ignoreFileBytes = 1 << 20
	ignoreRules     = 20_000
)

// ignoreFile is the rules of one .gitignore (or .git/info/exclude), under those of the folders around it. Rules that are a plain name or a plain
// extension, as most are, are found by map; a nil *ignoreFile ignores nothing.
type ignoreFile struct {
	outer  *ignoreFile
	base   int // how much of a path comes before what the patterns are matched against
	rules  []ignoreRule
	byName map[string][]int // index of rules, ascending
	byExt  map[string][]int // key is what follows the last dot
	others []int
}

// ignoreRule is one line.
type ignoreRule struct {
	negated bool
	dirOnly bool
	whole   bool     // matched against the path, else against the name
	prefix  string   // literal start
	wild    []globOp // the rest; nil: nothing may follow
	tail    string   // literal end, of wild
}

// newIgnoreFile reads the lines of an ignore file as git does. It returns outer where there is no rule.
func newIgnoreFile(text string, base int, outer *ignoreFile) *ignoreFile {
	f := &ignoreFile{outer: outer, base: base, byName: map[string][]int{}, byExt: map[string][]int{}}
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || line[0] == '#' || len(f.rules) == ignoreRules {
			continue
		}
		f.addRule(trimSpaces(line))
	}
	if len(f.rules) == 0 {
		return outer
	}
	return f
}

// trimSpaces removes the spaces at the end that no backslash protects.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		if line[i] == ' ' {
			continue
		}
		if line[i] == '\\' && i+1 < len(line) {
			i++
		}
		end = i + 1
	}
	return line[:end]
}

// addRule parses one line and files it under the fastest way to find it.
func (f *ignoreFile) addRule(p string) {
	var r ignoreRule
	if p, r.negated = strings.CutPrefix(p, "!"); p == "" {
		return
	}
	p, r.dirOnly = strings.CutSuffix(p, "/")
	r.whole = strings.Contains(p, "/")
	if name, anywhere := strings.CutPrefix(p, "**/"); anywhere && !strings.Contains(name, "/") {
		p, r.whole = name, false
	}
	p = strings.TrimPrefix(p, "/")
	if p == "" {
		return
	}
	plain := plainLen(p)
	r.prefix = p[:plain]
	at := len(f.rules)
	if plain < len(p) {
		var ok bool
		if r.wild, ok = compileGlob(p[plain:], r.whole); !ok {
			return
		}
		if last := r.wild[len(r.wild)-1]; last.kind == opText {
			r.tail = last.text
		}
	}
	f.rules = append(f.rules, r)
	ext, isExt := strings.CutPrefix(p, "*.")
	switch {
	case plain == len(p):
		name := p[strings.LastIndexByte(p, '/')+1:]
		f.byName[name] = append(f.byName[name], at)
	case isExt && !r.whole && plainLen(ext) == len(ext) && !strings.Contains(ext, "."):
		f.byExt[ext] = append(f.byExt[ext], at)
	default:
		f.others = append(f.others, at)
	}
}

// ignores tells whether path, whose last element is name, is ignored: the innermost file that has a matching rule decides, by its last one.
// Whether a folder around it is ignored is the walk's to know.
func (f *ignoreFile) ignores(path, name string, isDir bool) bool {
	for ; f != nil; f = f.outer {
		if at := f.last(path[f.base:], name, isDir); at >= 0 {
			return !f.rules[at].negated
		}
	}
	return false
}

// last returns the last rule that matches, -1 for none.
func (f *ignoreFile) last(path, name string, isDir bool) int {
	best := f.lastOf(f.byName[name], -1, path, name, isDir)
	if len(f.byExt) > 0 {
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			best = f.lastOf(f.byExt[name[dot+1:]], best, path, name, isDir)
		}
	}
	return f.lastOf(f.others, best, path, name, isDir)
}

// lastOf returns the last rule of some that matches and comes after best, else best.
func (f *ignoreFile) lastOf(some []int, best int, path, name string, isDir bool) int {
	for i := len(some) - 1; i >= 0 && some[i] > best; i-- {
		r := &f.rules[some[i]]
		if r.dirOnly && !isDir {
			continue
		}
		text := name
		if r.whole {
			text = path
		}
		if r.matches(text) {
			return some[i]
		}
	}
	return best
}

func (r *ignoreRule) matches(text string) bool {
	rest, ok := strings.CutPrefix(text, r.prefix)
	if !ok || !strings.HasSuffix(rest, r.tail) {
		return false
	}
	if r.wild == nil {
		return rest == ""
	}
	return matchGlob(r.wild, rest)
}

// readIgnoreAt reads the .gitignore of an open folder. One that is a link, special, too large or not to be read is not obeyed, as with git.
func readIgnoreAt(dir, base int, outer *ignoreFile) *ignoreFile {
	fd, st, err := openFile(dir, ignoreName)
	if err != nil {
		return outer
	}
	defer closeHandle(fd)
	if !st.regular || st.size > ignoreFileBytes {
		return outer
	}
	text, ok := readBounded(Reading{fd: fd}, ignoreFileBytes)
	if !ok {
		return outer
	}
	return newIgnoreFile(text, base, outer)
}

// readBounded reads r to its end; it fails when there is more than limit.
func readBounded(r io.Reader, limit int64) (string, bool) {
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(r, limit+1))
	return b.String(), err == nil && n <= limit
}

// outerRules are the rules that hold in the folder at prefix ("" or "a/b/") from outside it: .git/info/exclude of the root, then each
// .gitignore from the root down to its parent.
func (t *Tree) outerRules(prefix string) *ignoreFile {
	f := t.ignoreAt(".git/info/exclude", 0, nil)
	at, own := t.main.root, false // the folder whose ignore file is next
	defer func() {
		if own {
			at.Close()
		}
	}()
	for done := 0; done < len(prefix); {
		f = t.ignoreIn(at, prefix[:done], f)
		step := prefix[done:]
		step = step[:strings.IndexByte(step, '/')+1]
		done += len(step)
		if at == nil || done == len(prefix) {
			continue
		}
		below, err := at.OpenRoot(step + ".")
		if own {
			at.Close()
		}
		at, own = below, err == nil
		if err != nil {
			at = nil // a link that leads up or is absolute: what is behind it is reached by its whole path
		}
	}
	return f
}

// ignoreIn reads the ignore file of the folder at prefix, which is open at dir, or nil where only its path is known.
func (t *Tree) ignoreIn(dir *os.Root, prefix string, outer *ignoreFile) *ignoreFile {
	if dir == nil {
		return t.ignoreAt(prefix+ignoreName, len(prefix), outer)
	}
	if info, err := dir.Lstat(ignoreName); err != nil || !info.Mode().IsRegular() {
		return outer
	}
	file, err := dir.OpenFile(ignoreName, openFlags, 0)
	if err != nil {
		return outer
	}
	if (place{t.main, ""}).admit(file, "read", ignoreName) != nil {
		file.Close()
		return outer
	}
	return readIgnore(file, len(prefix), outer)
}

// ignoreAt reads an ignore file by its path.
func (t *Tree) ignoreAt(name string, base int, outer *ignoreFile) *ignoreFile {
	if info, err := t.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return outer
	}
	file, err := t.Open(name)
	if err != nil {
		return outer
	}
	return readIgnore(file, base, outer)
}

// readIgnore reads the rules of an open file and closes it.
func readIgnore(file File, base int, outer *ignoreFile) *ignoreFile {
	defer file.Close()
	text, ok := readBounded(file, ignoreFileBytes)
	if !ok {
		return outer
	}
	return newIgnoreFile(text, base, outer)
}
