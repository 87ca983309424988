package patch

import (
	"strconv"
	"strings"
)

// closingQuote is the index after the quote that ends the name at the start of s.
func closingQuote(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// unquote takes a name out of git's quotes, in which bytes stand as octal numbers; a name without quotes is itself.
func unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	if len(s) < 2 || closingQuote(s) != len(s) || s[len(s)-1] != '"' {
		return "", strconv.ErrSyntax
	}
	return strconv.Unquote(s) // git's escapes are among Go's
}

// gitNames takes the two names out of the rest of a line "diff --git"; none where they cannot be told apart.
func gitNames(rest string) [2]string {
	var n [2]string
	if strings.HasPrefix(rest, `"`) {
		end := closingQuote(rest)
		n[0], n[1] = rest[:end], strings.TrimPrefix(rest[end:], " ")
	} else if at := strings.Index(rest, ` "`); at > 0 && strings.HasSuffix(rest, `"`) {
		n[0], n[1] = rest[:at], rest[at+1:]
	} else if half := len(rest) / 2; len(rest)%2 == 1 && rest[half] == ' ' && afterSlash(rest[:half]) == afterSlash(rest[half+1:]) {
		n[0], n[1] = rest[:half], rest[half+1:] // one name twice, with prefixes of one length or none
	} else if strings.Count(rest, " ") == 1 {
		n[0], n[1], _ = strings.Cut(rest, " ")
	}
	for i := range n {
		var err error
		if n[i], err = unquote(n[i]); err != nil || n[i] == "" {
			return [2]string{}
		}
	}
	return n
}

// afterSlash is a name without its first folder; one without folders is itself.
func afterSlash(name string) string {
	if _, rest, ok := strings.Cut(name, "/"); ok && rest != "" {
		return rest
	}
	return name
}

// Locate decides what names mean: exists says of a name whether a file of it is there. Where headers have a prefix that is no folder, every name loses
// it, or none does. It returns the files in the patch's order.
func (p *Patch) Locate(exists func(name string) bool) ([]File, error) {
	strip := p.prefixed()
	if !p.found(strip, exists) && p.found(!strip, exists) {
		strip = !strip
	}
	files := make([]File, len(p.files))
	for i, f := range p.files {
		if !f.exact {
			if err := f.settle(strip, exists); err != nil {
				return nil, err
			}
		}
		files[i] = f
	}
	return files, nil
}

// sides are the names of the two sides as the headers have them; nullName for one that does not exist.
func (f *File) sides() (oldName, newName string) {
	if f.names.hasPair {
		return f.names.old, f.names.new
	}
	return f.names.git[0], f.names.git[1]
}

// known are the prefixes that git writes.
func known(name string) bool {
	return len(name) > 2 && name[1] == '/' && strings.IndexByte("abciow", name[0]) >= 0
}

// prefixed tells from the names alone whether they have a prefix: the two names of one file differ in it. Names of which both are alike have none.
func (p *Patch) prefixed() bool {
	with, without, maybe := 0, 0, 0
	for _, f := range p.files {
		if f.exact {
			continue
		}
		for _, pair := range [][2]string{{f.names.old, f.names.new}, f.names.git} {
			a, b := pair[0], pair[1]
			switch {
			case a == "":
			case f.names.moved:
				with += count(a != f.Old && afterSlash(a) == f.Old)
				without += count(a == f.Old)
			case a == nullName || b == nullName:
				maybe += count(known(a) || known(b))
				without += count(!known(a) && !known(b))
			case a == b:
				without++
			case afterSlash(a) == afterSlash(b) && afterSlash(a) != a:
				with++
			}
		}
	}
	return with > without || with == without && maybe > 0
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// found says whether every file that the patch needs is there when names lose their prefix or keep it.
func (p *Patch) found(strip bool, exists func(string) bool) bool {
	for _, f := range p.files {
		if f.exact || f.Op == Create || f.names.moved {
			continue
		}
		oldName, newName := f.sides()
		if f.Op == Delete {
			newName = oldName
		}
		if !exists(shown(oldName, strip)) && !exists(shown(newName, strip)) {
			return false
		}
	}
	return true
}

func shown(name string, strip bool) string {
	if strip && !strings.HasPrefix(name, "/") {
		return afterSlash(name)
	}
	return name
}

// settle gives f its names.
func (f *File) settle(strip bool, exists func(string) bool) error {
	if f.names.moved {
		return nil
	}
	oldName, newName := f.sides()
	oldName, newName = shown(oldName, strip), shown(newName, strip)
	switch f.Op {
	case Create:
		if newName == nullName {
			newName = oldName
		}
		f.New = newName
		return nil
	case Delete:
		if oldName == nullName {
			oldName = newName
		}
		f.Old = oldName
		return nil
	}
	if oldName != newName {
		has, will := exists(oldName), exists(newName)
		switch {
		case has && will:
			return wrong(f.Line, "it has two names, %q and %q, and both files are there; give both lines the name of the one to change", oldName, newName)
		case has && strings.HasPrefix(newName, oldName), has && strings.HasPrefix(oldName, newName):
			newName = oldName // x against x.orig or x.new
		case has:
			return wrong(f.Line, "it has two names, %q and %q; to rename a file write the lines \"rename from\" and \"rename to\"", oldName, newName)
		}
	}
	f.Old, f.New = newName, newName
	if f.onlyAdds() && len(f.Hunks) == 1 && f.Hunks[0].Blind && f.Hunks[0].Old == 0 && !exists(newName) {
		f.Op, f.Old = Create, ""
	}
	return nil
}
