package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// guardCommand is what rules that forbid say of the simple commands in a command line, and those for files of its redirects.
func (j *judge) guardCommand(s *Set, guards []lookup, allow lookup) Decision {
	byWords := len(allow.rules) > 0 && allow.bare().Verdict == None
	files := slices.Concat(s.guards(findTool("write_file")), s.guards(findTool("read_file")))
	guarded := slices.ContainsFunc(slices.Concat(guards, files), func(l lookup) bool { return len(l.rules) > 0 })
	if !guarded && !byWords {
		return Decision{}
	}
	if j.script == nil {
		sc := analyse(j.call.Command, j.call.POSIX, j.call.Env)
		j.script = &sc
	}
	d := Decision{}
	for _, l := range guards {
		d = d.stricter(j.commands(l))
	}
	for _, t := range j.script.targets {
		d = d.stricter(j.redirect(s, t, byWords && t.write))
	}
	if guarded {
		d = d.stricter(j.doubt(false))
	}
	return d
}

// allowCommand says whether rules that allow cover every simple command.
func (j *judge) allowCommand(allow lookup) Decision {
	if d := j.doubt(true); d.Verdict != None {
		return d
	}
	by, more := Decision{Verdict: Allow, Why: "it runs nothing that needs a rule"}, 0
	for _, p := range j.script.parts {
		if p.free {
			continue
		}
		if program := programOf(p.words[0].text); strings.HasPrefix(program, ".") && strings.Contains(program, "/") && j.elsewhere() {
			return Decision{Verdict: Ask, Why: "which file it runs depends on the folder that it runs in", Part: show(p.words)}
		}
		i := slices.IndexFunc(allow.rules, func(r rule) bool { return r.command.match(p.words, granted) })
		if i < 0 {
			return uncovered(show(p.words))
		}
		if by.Rule != "" {
			more++
			continue
		}
		by = allow.decided(allow.rules[i], show(p.words))
	}
	if more > 0 {
		by.Part += fmt.Sprintf(", and %d more by theirs", more)
	}
	return by
}

// elsewhere says that commands do not run in the root, which relative names in rules are about.
func (j *judge) elsewhere() bool {
	return j.script.moved || j.call.Workdir != "" && path.Clean(j.call.Workdir) != "."
}

// doubt asks about what the text of a command does not tell: which commands run, or with all also whether they are what they are called.
func (j *judge) doubt(all bool) Decision {
	for _, one := range j.script.doubts {
		if all || one.hidden {
			return Decision{Verdict: Ask, Why: one.why, Part: one.text}
		}
	}
	return Decision{}
}

// commands is what the rules of one list say of the simple commands.
func (j *judge) commands(l lookup) Decision {
	if j.doubt(false).Verdict == Ask && j.heard == nil {
		j.heard = vocabularyOf(j.call.Command)
	}
	d := Decision{}
	for _, r := range l.rules {
		if r.bare() {
			continue
		}
		if j.heard != nil && j.heard.holds(r.command) {
			d = d.stricter(l.decided(r, "its words stand in what cannot be understood, "+short(j.call.Command)))
		}
		for _, p := range j.script.parts {
			switch {
			case d.Verdict == l.verdict:
				return d
			case r.command.match(p.words, surely):
				d = l.decided(r, show(p.words))
			case !p.guess && p.words[0].known() && r.command.match(p.words, maybe): // of other words there is a doubt
				d = d.stricter(Decision{Verdict: Ask, Rule: r.named(l.list), Part: show(p.words) + ", which may be what it is about"})
			}
		}
	}
	return d
}

// redirect judges a file that a redirect opens as if read_file or write_file did; need says that a rule must allow it.
func (j *judge) redirect(s *Set, t target, need bool) Decision {
	as := findTool("read_file")
	if t.write {
		as = findTool("write_file")
	}
	guards := s.guards(as)
	d := Decision{}
	for _, l := range guards {
		d = d.stricter(l.bare())
	}
	shown := "redirect to " + show([]word{t.word})
	if !t.write {
		shown = "redirect from " + show([]word{t.word})
	}
	if hides := !t.word.known() || j.script.moved && !path.IsAbs(t.word.text) || isInput(t.word.text); hides {
		if need || slices.ContainsFunc(guards, func(l lookup) bool { return len(l.rules) > 0 }) {
			d = d.stricter(Decision{Verdict: Ask, Why: "which file it opens is known only when it runs", Part: shown})
		}
		return d
	}
	file, err := j.opened(t.word.text)
	if err != nil && need {
		return d.stricter(Decision{Verdict: Ask, Why: "it leads out of the workspace, or nobody can tell where", Part: shown})
	} else if err != nil {
		return d // and so to nothing that a pattern is about
	}
	d = d.stricter(j.guardPaths(as, []string{file}, guards))
	if d.Verdict < Ask && need {
		d = j.allowPaths(as, []string{file}, about(as, "allow", Allow, s.allow))
		if at, err := j.place(file); d.Verdict == Ask && err == nil {
			return Decision{Verdict: Ask, Why: "no allow rule such as edit(" + short(at.Real) + ") covers it", Part: shown}
		}
	}
	if d.Verdict < Ask {
		return Decision{}
	}
	d.Part = shown
	return d
}

// opened is the file that a name in a command leads to. Unlike the file tools, which fold a name first, the system follows a symlink before it goes up from it.
func (j *judge) opened(name string) (string, error) {
	if !path.IsAbs(name) && j.call.Workdir != "" {
		name = j.call.Workdir + "/" + name
	}
	if !slices.Contains(strings.Split(name, "/"), "..") {
		return name, nil
	}
	at := "."
	if path.IsAbs(name) {
		at = "/"
	}
	for part := range strings.SplitSeq(name, "/") {
		if part != ".." {
			at = path.Join(at, part)
			continue
		}
		p, err := j.place(at)
		if err != nil {
			return "", err
		}
		if p.Real == "." {
			return "", fmt.Errorf("%q leads outside the workspace", short(name))
		}
		at = path.Dir(p.Real)
	}
	return at, nil
}

// vocabulary is the words of a text that could not be understood, without the quotes and backslashes that may hide them.
type vocabulary struct {
	words map[string]bool
	names map[string]bool // the programs that they may be: in small letters, and without their folders too
}

func vocabularyOf(text string) *vocabulary {
	v := &vocabulary{map[string]bool{}, map[string]bool{}}
	text = strings.NewReplacer("\\\n", "", `\`, "", "'", "", `"`, "").Replace(text)
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|<>()`${}=,", r) }) {
		v.words[word] = true
		program := strings.ToLower(programOf(word))
		v.names[program], v.names[path.Base(program)] = true, true
	}
	return v
}

// holds says whether all words of a pattern are there.
func (v *vocabulary) holds(p commandPattern) bool {
	has := func(words map[string]bool, t string) bool {
		if words[t] || !strings.Contains(t, star) {
			return words[t]
		}
		for w := range words {
			if glob(t, w) {
				return true
			}
		}
		return false
	}
	for i, t := range p {
		if t != star && (i > 0 && !has(v.words, t) || i == 0 && !has(v.names, strings.ToLower(programOf(t)))) {
			return false
		}
	}
	return true
}
