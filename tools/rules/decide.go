package rules

// Verdict is what rules say of a call; the greater is the stricter.
type Verdict int

const (
	None  Verdict = iota // nothing: the mode decides
	Allow                // granted, also where the mode would ask
	Ask
	Deny
)

// Verdicts are the words for verdicts, from the first on.
func Verdicts() []string { return []string{"mode", "allow", "ask", "deny"} }

func (v Verdict) String() string { return Verdicts()[v] }

// MarshalText writes the word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Decision is a verdict and what it comes from.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	Rule    string  `json:"rule,omitempty"` // list and text of the rule that decided, such as "deny run_command(git push *)"; empty where none did
	Part    string  `json:"part,omitempty"` // of the call: the simple command, the path or the host
	Why     string  `json:"why,omitempty"`  // where no rule decided
}

// String tells what decided.
func (d Decision) String() string {
	by := "no rule"
	switch {
	case d.Rule != "":
		by = "rule " + d.Rule
	case d.Why != "":
		by = d.Why
	}
	if d.Part != "" {
		by += ": " + d.Part
	}
	return by
}

// stricter is the stricter of two decisions, of equal ones the first.
func (d Decision) stricter(o Decision) Decision {
	if o.Verdict > d.Verdict {
		return o
	}
	return d
}

// Judge decides a call by several sets, each of which narrows: the strictest verdict counts.
func Judge(sets []*Set, c Call) Decision {
	j := judge{call: c, tool: findTool(c.Tool)}
	d := Decision{}
	for _, s := range sets {
		if s == nil {
			continue
		}
		one := j.decide(s)
		if s.narrows && one.Verdict == Allow {
			one = Decision{}
		}
		d = d.stricter(one)
	}
	return d
}

// Decide decides a call by one set.
func (s *Set) Decide(c Call) Decision { return Judge([]*Set{s}, c) }

// Hides returns the rule that denies every call of a tool, "" for none.
func (s *Set) Hides(name string) string {
	if s == nil {
		return ""
	}
	t := findTool(name)
	for _, r := range s.deny {
		if r.bare() && r.covers(t, "deny") {
			return r.named("deny")
		}
	}
	return ""
}

// judge decides one call, and remembers what it found out of it.
type judge struct {
	call   Call
	tool   tool
	script *script
	heard  *vocabulary // of a script with a doubt
	places map[string]placed
}

type placed struct {
	at  Place
	err error
}

// place finds where a path leads, once.
func (j *judge) place(name string) (Place, error) {
	p, ok := j.places[name]
	if !ok {
		p.at, p.err = j.call.place(name)
		if j.places == nil {
			j.places = map[string]placed{}
		}
		j.places[name] = p
	}
	return p.at, p.err
}

// lookup is the rules of one list of a set that are about a tool.
type lookup struct {
	list    string
	verdict Verdict
	rules   []rule
}

// about picks the rules of a list for a tool.
func about(t tool, list string, verdict Verdict, rules []rule) lookup {
	l := lookup{list: list, verdict: verdict}
	for _, r := range rules {
		if r.covers(t, list) {
			l.rules = append(l.rules, r)
		}
	}
	return l
}

// guards are the rules that forbid something of a tool, the stricter list first.
func (s *Set) guards(t tool) []lookup {
	return []lookup{about(t, "deny", Deny, s.deny), about(t, "ask", Ask, s.ask)}
}

func (l lookup) decided(r rule, part string) Decision {
	return Decision{Verdict: l.verdict, Rule: r.named(l.list), Part: part}
}

// bare is the verdict of a rule for every call.
func (l lookup) bare() Decision {
	for _, r := range l.rules {
		if r.bare() {
			return l.decided(r, "")
		}
	}
	return Decision{}
}

// uncovered is the verdict on a call that rules which allow do not cover.
func uncovered(part string) Decision {
	return Decision{Verdict: Ask, Why: "no allow rule covers it", Part: part}
}

func (j *judge) decide(s *Set) Decision {
	guards, allow := s.guards(j.tool), about(j.tool, "allow", Allow, s.allow)
	d := Decision{}
	for _, l := range guards {
		d = d.stricter(l.bare())
	}
	if d.Verdict == Deny {
		return d
	}
	switch j.tool.kind {
	case byCommand:
		d = d.stricter(j.guardCommand(s, guards, allow))
	case byPath:
		d = d.stricter(j.guardPaths(j.tool, j.call.Paths, guards))
	case byHost:
		d = d.stricter(j.guardHost(guards))
	}
	if d.Verdict >= Ask || len(allow.rules) == 0 {
		return d
	}
	if all := allow.bare(); all.Verdict == Allow {
		return all
	}
	switch j.tool.kind {
	case byCommand:
		return j.allowCommand(allow)
	case byPath:
		return j.allowPaths(j.tool, j.call.Paths, allow)
	}
	return j.allowHost(allow)
}

// guardPaths is what rules that forbid say of paths. A path that leads outside is left to the tool, which refuses it.
func (j *judge) guardPaths(t tool, names []string, guards []lookup) Decision {
	d := Decision{}
	for _, l := range guards {
		for _, r := range l.rules {
			if r.bare() {
				continue
			}
			if len(names) == 0 {
				return d.stricter(Decision{Verdict: Ask, Rule: r.named(l.list), Part: "which files it is about is not known"})
			}
			for _, name := range names {
				at, err := j.place(name)
				switch {
				case err != nil:
				case r.path.matches(at):
					d = d.stricter(l.decided(r, short(at.Real)))
				case t.reach == takeAll && at.Folder && !at.Scratch && r.path.reaches(at.Real):
					d = d.stricter(Decision{Verdict: Ask, Rule: r.named(l.list), Part: short(at.Real) + ", which may hold what it is about"})
				}
			}
		}
	}
	return d
}

// allowPaths says whether rules that allow cover every path.
func (j *judge) allowPaths(t tool, names []string, allow lookup) Decision {
	if len(names) == 0 {
		return Decision{Verdict: Ask, Why: "which files it is about is not known"}
	}
	d := Decision{}
	for _, name := range names {
		at, err := j.place(name)
		if err != nil {
			return Decision{Verdict: Ask, Why: "it leads out of the workspace, or nobody can tell where", Part: short(err.Error())}
		}
		one := Decision{}
		for _, r := range allow.rules {
			if r.bare() || r.path.grants(at, t.reach) {
				one = allow.decided(r, short(at.Real))
				break
			}
		}
		if one.Verdict != Allow {
			return uncovered(short(at.Real))
		}
		d = d.stricter(one)
	}
	return d
}

func (j *judge) guardHost(guards []lookup) Decision {
	host, err := hostOfURL(j.call.URL)
	d := Decision{}
	for _, l := range guards {
		for _, r := range l.rules {
			switch {
			case r.bare():
			case err != nil:
				d = d.stricter(Decision{Verdict: Ask, Why: err.Error()})
			case r.domain.Matches(host):
				d = d.stricter(l.decided(r, short(host)))
			}
		}
	}
	return d
}

func (j *judge) allowHost(allow lookup) Decision {
	host, err := hostOfURL(j.call.URL)
	if err != nil {
		return Decision{Verdict: Ask, Why: err.Error()}
	}
	for _, r := range allow.rules {
		if r.domain.Matches(host) {
			return allow.decided(r, short(host))
		}
	}
	return uncovered(short(host))
}
